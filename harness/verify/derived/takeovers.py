"""Members that a new coordinator evicted right after it took over: more rows of `evictions`.

A group's members are in the offsets topic, on every in-sync replica, before they learn their
generation. A new coordinator reads them there, and starts a new session of each
(`GroupCoordinator.onGroupLoaded`). Members are judged that were undisturbed long enough to have no
request in flight, if no fault acted except those that end brokers or move leadership.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from urteil.chaos.effects import Effect
from urteil.harness.clients.options import MembershipOptions
from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.coordinators import coordinating_partition
from urteil.harness.verify.derived.fault_effects import ENDS_NODES, has_only
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.derived.undisturbed_intervals import (
    Session,
    end_of_load_ns,
    polls_by_session,
    session_timeout_ns,
)
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.internal_topics import OFFSETS_TOPIC
from urteil.harness.verify.limits import SECOND_NS

LEADERSHIP_MOVES = ENDS_NODES | {Effect.RESTARTS_NODES, Effect.MOVES_LEADERS}
"""Effects of faults that move leadership to a replica with the complete log."""
ALONE_NS = 5 * SECOND_NS
SLACK_NS = 3 * SECOND_NS
"""ZooKeeper's clock and the lab's may differ by two seconds."""

Event = tuple[int, str, Session, int]
"""Time, event, session and partition."""


def takeover_rows(
    run_dir: Path, small: SmallEvidence, scenario: Scenario, facts: RunFacts
) -> list[Row]:
    """One row for each member that lost all its partitions right after a new coordinator took
    over."""
    if facts.runtime == IMPORTED:
        return []
    session_ns, events = session_timeout_ns(scenario), _events(run_dir, small)
    coordinator_spans, limit_ns = _coordinator_spans(small), end_of_load_ns(facts)
    stall_ns = MembershipOptions.of(scenario.workload).max_poll_interval_ms * 1_000_000 - SECOND_NS
    expulsions = [
        (session, p, span, at_ns)
        for group, group_events in events.items()
        for at_ns, what, session, p in group_events
        if what == "lost" and at_ns < limit_ns
        for span in _recent_terms(group, coordinator_spans, at_ns, session_ns - SLACK_NS)
        if _is_unexplained(small, group, group_events, session, Interval(span.begin_ns, at_ns))
    ]
    polls_of = polls_by_session(run_dir, {session for session, *_ in expulsions}, small.numbers)
    rows: dict[Session, Row] = {}
    for session, p, span, at_ns in expulsions:
        polls = polls_of[session].polls if session in polls_of else []
        if any(at_ns - stall_ns < poll <= at_ns for poll in polls):  # else it may have left
            row = {"client": session[0], "p": p, "evictions": 1, "leader": span.leader}
            rows.setdefault(session, row | {"from_ns": span.begin_ns, "to_ns": at_ns})
    return list(rows.values())


def _events(run_dir: Path, small: SmallEvidence) -> dict[str, list[Event]]:
    """The assignments and revocations of each group's dynamic members, in order."""
    plain = {(row["client"], row["session"]) for row in small.clients if row["instance"] is None}
    by_group: dict[str, list[Event]] = defaultdict(list)
    for row in evidence.rows(run_dir, "assignments"):
        p = small.numbers.get((row["topic_id"], row["partition"]))
        session = (row["client"], row["session"])
        is_complete = (
            p is not None and None not in (row["at_ns"], row["group"]) and session in plain
        )
        if is_complete and row["event"] in ("assigned", "revoked", "lost"):
            by_group[row["group"]].append((row["at_ns"], row["event"], session, p or 0))
    return {group: sorted(events) for group, events in by_group.items()}


def _coordinator_spans(small: SmallEvidence) -> dict[int, list[Span]]:
    """The spans of the offsets topic's partitions, by their numbers."""
    return {
        int(spans[0].path.split("/")[-2]): spans
        for spans in small.spans.values()
        if spans[0].topic == OFFSETS_TOPIC
    }


def _recent_terms(
    group: str, coordinator_spans: dict[int, list[Span]], at_ns: int, within_ns: int
) -> Iterator[Span]:
    """The spans of a new coordinator that was elected cleanly at most `within_ns` before."""
    spans = (
        coordinator_spans.get(coordinating_partition(group, len(coordinator_spans)), [])
        if coordinator_spans
        else []
    )
    for span in spans:
        before = span.previous
        if before is None or not span.begins_epoch or span.unclean or span.leader < 0:
            continue
        if before.leader != span.leader and 0 <= at_ns - span.begin_ns < within_ns:
            yield span


def _is_unexplained(
    small: SmallEvidence, group: str, events: list[Event], session: Session, interval: Interval
) -> bool:
    """Whether the member had kept its partitions for long, and nothing but the move of leadership
    disturbed the group since then."""
    before = [event for event in events if event[0] <= interval.begin_ns]
    own_events = [event for event in before if event[2] == session]
    if (
        not own_events
        or own_events[-1][1] != "assigned"
        or before[-1][0] > interval.begin_ns - ALONE_NS
    ):
        return False
    since = Interval(own_events[-1][0] - ALONE_NS, interval.end_ns)
    if any(
        not has_only(f, LEADERSHIP_MOVES) and acting_interval(f).meets(since) for f in small.faults
    ):
        return False
    times = [
        row[end]
        for row in small.clients
        for end in ("begin_ns", "end_ns")
        if row["group"] == group and row[end] is not None
    ]
    return not any(before[-1][0] < at <= interval.end_ns for at in times)
