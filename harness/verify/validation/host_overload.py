"""Whether host load was too high for deadlines, as the lab and agents measured it
(`harness.host_load`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from urteil.harness.host_load import METRIC, SOURCE
from urteil.harness.verify import evidence

MOST = 12.0
"""Tasks a processor. With other work beside it, a run on two processors had 4 with our brokers, 7
with Apache Kafka's, and 10 as those started."""
STRETCH_NS = 10_000_000_000


def describe_overload(run_dir: Path) -> str | None:
    """The worst ten seconds in one sentence; None where they were not that bad."""
    worst = {source: _worst(looks) for source, looks in _looks(run_dir).items()}
    source = max(worst, key=lambda source: worst[source], default=SOURCE)
    if worst.get(source, 0.0) <= MOST:
        return None
    where = "" if source == SOURCE else f" of the host {source}"
    return (
        f"{worst[source]:.0f} tasks a processor{where} wanted to run for ten seconds: it may be "
        "the machine that is late"
    )


def _worst(looks: Sequence[tuple[int, float]]) -> float:
    worst, stretch = 0.0, deque[tuple[int, float]]()
    for at_ns, value in sorted(looks):
        stretch.append((at_ns, value))
        while at_ns - stretch[0][0] > STRETCH_NS:
            stretch.popleft()
            worst = max(worst, sum(value for _, value in stretch) / len(stretch))
    return worst


def _looks(run_dir: Path) -> dict[str, list[tuple[int, float]]]:
    """Times and loads by their source."""
    looks: dict[str, list[tuple[int, float]]] = {}
    for row in evidence.samples(run_dir, (METRIC,)):
        if None not in (row["source"], row["at_ns"], row["value"]):
            looks.setdefault(row["source"], []).append((row["at_ns"], row["value"]))
    return looks
