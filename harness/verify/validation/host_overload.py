"""Whether host load was too high for deadlines, as the lab measured it (`harness.host_load`)."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from urteil.harness.host_load import METRIC
from urteil.harness.verify import evidence

MOST = 12.0
"""Tasks a processor. With other work beside it, a run on two processors had 4 with our brokers, 7
with Apache Kafka's, and 10 as those started."""
STRETCH_NS = 10_000_000_000


def describe_overload(run_dir: Path) -> str | None:
    """The worst ten seconds in one sentence; None where they were not that bad."""
    worst, stretch = 0.0, deque[tuple[int, float]]()
    for at_ns, value in _looks(run_dir):
        stretch.append((at_ns, value))
        while at_ns - stretch[0][0] > STRETCH_NS:
            stretch.popleft()
            worst = max(worst, sum(value for _, value in stretch) / len(stretch))
    if worst <= MOST:
        return None
    return (
        f"{worst:.0f} tasks a processor wanted to run for ten seconds: it may be the machine "
        "that is late"
    )


def _looks(run_dir: Path) -> list[tuple[int, float]]:
    looks = [(row["at_ns"], row["value"]) for row in evidence.samples(run_dir, (METRIC,))]
    return sorted(look for look in looks if None not in look)
