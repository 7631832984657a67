"""Replicas that leave the ISR although every broker is up and no fault acts. Aftereffects of a
fault may appear long after the fault was healed and all replicas were in sync again."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.scenario import Scenario
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.evidence import Row

KIND = "fell out"
_MOVES = ("reassign", "cancel moves")


def isr_shrink_rows(
    small: SmallEvidence, scenario: Scenario, undisturbed: Interval
) -> Iterator[Row]:
    """Rows of the table `cluster_tasks`, one for each partition whose replicas were all in sync at
    some time of an undisturbed interval. `shortfall` is null where they are all in sync at its end.
    Partitions that lacked replicas throughout are left out: they still recover from earlier faults.
    Topics whose replicas were moved are left out, too: new replicas have to catch up."""
    moved = {str(op["subject"]) for op in small.ops if op["act"] in _MOVES}
    for key, p in small.numbers.items():
        topic = small.topics.get(key[0])
        if topic is None or topic.name in moved or key in small.deleted:
            continue
        in_sync_ns, in_sync = None, 0
        for span in small.spans.get(p, []):
            if span.begin_ns >= undisturbed.end_ns:
                break
            in_sync = len(span.isr)
            if in_sync >= topic.replication_factor and span.end_ns > undisturbed.begin_ns:
                in_sync_ns = span.end_ns
        if in_sync_ns is None:
            continue
        place = f"{topic.name}-{key[1]}"
        is_in_sync = in_sync_ns >= undisturbed.end_ns
        yield {
            "kind": KIND, "key": key, "from_ns": min(in_sync_ns, undisturbed.end_ns),
            "task": f"All {topic.replication_factor} replicas of {place} were in sync",
            "shortfall": None if is_in_sync else f"only {in_sync} were, while no fault acted",
            "limit_s": scenario.recovery_deadline_s,
        }  # fmt: skip
