"""Records that a client deleted: no replica has them any more."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from urteil.suites.simulation.disturbances import DOWN
from urteil.suites.simulation.evidence import Evidence, Place, states_of
from urteil.suites.simulation.history import Deletion

CHECKPOINT_S = 2.0
"""The time in which a broker writes the start of a log into its checkpoint
(log.flush.start.offset.checkpoint.interval.ms is 1 s in the mix)."""


def undeleted_records(evidence: Evidence) -> Iterator[str]:
    """No leader has records below the low watermark that DeleteRecords returned, and at the end no
    replica in sync. A broker that ends before its checkpoint may forget the start of a log."""
    in_sync = {place: state["isr"] for place, _, state in states_of(evidence.changes)}
    starts: dict[Place, list[Deletion]] = defaultdict(list)
    for each in evidence.history.deletions:
        if not _may_be_forgotten(evidence, each):
            starts[each.topic, each.partition].append(each)
    for place, deletions in starts.items():
        last = max(deletions, key=lambda each: each.low_watermark)
        for broker, start, at_s in _log_starts_of_leaders(evidence, place):
            known = [each.low_watermark for each in deletions if each.end_s < at_s]
            if start < max(known, default=0):
                yield (
                    f"{place} on its leader {broker} begins at {start} at {at_s:.3f} s: records "
                    f"below {max(known)} had been deleted"
                )
                break
        for replica in evidence.replicas.get(place, ()):
            if replica.broker in in_sync[place] and replica.log_start < last.low_watermark:
                yield (
                    f"{place} on {replica.broker} begins at {replica.log_start} at the end: "
                    f"records below {last.low_watermark} had been deleted"
                )


def _log_starts_of_leaders(evidence: Evidence, place: Place) -> Iterator[tuple[int, int, float]]:
    """Broker, log start and time of what the leaders of the moment held."""
    states = [
        (change.at_s, state)
        for where, change, state in states_of(evidence.changes)
        if where == place
    ]
    times = [at_s for at_s, _ in states]
    for glimpse in evidence.glimpses:
        if glimpse.place != place or not (n := bisect_right(times, glimpse.at_s)):
            continue
        state = states[n - 1][1]
        if (state["leader"], state["leader_epoch"]) == (glimpse.broker, glimpse.leader_epoch):
            yield glimpse.broker, glimpse.log_start, glimpse.at_s


def _may_be_forgotten(evidence: Evidence, deletion: Deletion) -> bool:
    """Whether a broker was down when the deletion was acknowledged, or before its checkpoint."""
    return any(
        each.kind == DOWN
        and each.begin_s < deletion.end_s + CHECKPOINT_S
        and each.end_s > deletion.begin_s - CHECKPOINT_S
        for each in evidence.disturbances
    )
