"""Topics that many questions share: made once a cluster, never changed by a question."""

from __future__ import annotations

from tests.conformance.questions.registry import RUN
from tests.conformance.records import NOW_MS, batch, produce
from tests.conformance.side import Side

LAST = 14


def filled(side: Side) -> str:
    """Partition 0: 15 records in 5 batches, led by 1; partition 1 empty, led by 2."""
    return side.once(_filled)


def _filled(side: Side) -> str:
    name = side.create(f"filled-{RUN}", [(1, 2), (2, 1)])
    for n in range(5):
        data = batch([b"%d-%d" % (n, m) for m in range(3)], at_ms=NOW_MS + 10_000 * n)
        side.ask(produce(name, data), 9)
    return name


def spread(side: Side) -> str:
    """Three partitions with three replicas each, led by 1, 2 and 3; empty."""
    return side.once(_spread)


def _spread(side: Side) -> str:
    return side.create(f"spread-{RUN}", [(1, 2, 3), (2, 3, 1), (3, 1, 2)])
