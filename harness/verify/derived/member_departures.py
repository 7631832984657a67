"""Members that left a group while other members stayed: rows of the table `member_departures`.

A dynamic member leaves with LeaveGroup, and the others receive its partitions after their next
heartbeats. A coordinator that ignored the request waits until the member's session times out. So
this is judged where session timeouts are long: half of one is enough for a rebalance.

A killed member sends nothing: the others wait until its session times out, and then no longer than
a rebalance takes.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from urteil.chaos.effects import Effect
from urteil.harness.evidence.acts import KILL
from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.fault_effects import has_only
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.derived.undisturbed_intervals import end_of_load_ns, session_timeout_ns
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.internal_topics import OFFSETS_TOPIC
from urteil.harness.verify.limits import SECOND_NS

LONG_NS = 15 * SECOND_NS
LEAVING_NS = 5 * SECOND_NS
"""The longest time from a member's release of its partitions to its end when it leaves the group by
itself."""
REBALANCE_NS = 8 * SECOND_NS
"""The time that a rebalance of live members may take after a member was removed."""
QUIET_NS = 3 * SECOND_NS
"""The time before a member's death without an assignment: a rebalance ignores dead members."""

Session = tuple[str, int]
Events = dict[tuple[str, int], list[tuple[int, str, Session]]]


def departure_rows(
    run_dir: Path, small: SmallEvidence, scenario: Scenario, facts: RunFacts
) -> list[Row]:
    """A row for each partition that a member revoked when it left, or had when it was killed
    (`died`). `reassigned_ns` is the next assignment of the partition, `limit_ns` the time by which
    it was due. Departures during a change of the group's coordinator are left out, and so are those
    during faults with effects other than the departures themselves."""
    if facts.runtime == IMPORTED:
        return []
    session_ns, events_by_partition = session_timeout_ns(scenario), _events(run_dir, small)
    left = (
        _leave_rows(small, events_by_partition, session_ns // 2, facts)
        if session_ns >= LONG_NS
        else []
    )
    rows = left + _death_rows(small, events_by_partition, session_ns + REBALANCE_NS, facts)
    return [{"n": number} | row for number, row in enumerate(rows)]


def _leave_rows(
    small: SmallEvidence, events_by_partition: Events, bound_ns: int, facts: RunFacts
) -> list[Row]:
    ends: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    for row in small.clients:
        is_static = row["instance"] is not None  # a static member sends no LeaveGroup when it ends
        if row["kind"] == "group" and row["end_ns"] is not None and not is_static:
            ends[row["group"]][row["client"], row["session"]] = row["end_ns"]
    disturbed, end_ns = disturbances(small, Effect.CHANGES_MEMBERS), end_of_load_ns(facts)
    rows: list[Row] = []
    for (group, p), events in sorted(events_by_partition.items()):
        for at_ns, event, session in events:
            left = event == "revoked" and 0 <= ends[group].get(session, 0) - at_ns <= LEAVING_NS
            wait = Interval(at_ns, at_ns + bound_ns)
            if (
                not left
                or wait.end_ns > end_ns
                or any(interval.meets(wait) for interval in disturbed)
            ):
                continue
            if not any(mate != session and end > wait.end_ns for mate, end in ends[group].items()):
                continue
            rows.append(_row(group, p, session, wait, events, died=0))
    return rows


def _death_rows(
    small: SmallEvidence, events_by_partition: Events, bound_ns: int, facts: RunFacts
) -> list[Row]:
    """One row for each partition that a member had when it was killed while other members
    stayed."""
    ends: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for row in small.clients:
        if row["kind"] == "group" and row["end_ns"] is not None:
            ends[row["group"]].append((row["client"], row["end_ns"]))
    disturbed, end_ns = disturbances(small, Effect.KILLS_CLIENTS), end_of_load_ns(facts)
    kills = [(op["complete_ns"], op["subject"]) for op in small.ops if op["act"] == KILL]
    rows: list[Row] = []
    for (group, p), events in sorted(events_by_partition.items()):
        moved = [
            ns
            for (name, _), times in events_by_partition.items()
            if name == group
            for ns, _, _ in times
        ]
        for at_ns, subject in kills:
            before = [event for event in sorted(events) if event[0] <= at_ns]
            if not before or before[-1][1] != "assigned" or before[-1][2][0] != subject:
                continue
            wait, session = Interval(at_ns, at_ns + bound_ns), before[-1][2]
            if (
                wait.end_ns > end_ns
                or any(interval.meets(wait) for interval in disturbed)
                or any(at_ns - QUIET_NS < ns <= at_ns for ns in moved)
                or not any(member != subject and end > wait.end_ns for member, end in ends[group])
            ):
                continue
            rows.append(_row(group, p, session, wait, events, died=1))
    return rows


def _row(
    group: str,
    p: int,
    session: Session,
    wait: Interval,
    events: list[tuple[int, str, Session]],
    *,
    died: int,
) -> Row:
    later = (ns for ns, what, _ in events if what == "assigned" and ns > wait.begin_ns)
    return {
        "client": session[0],
        "grp": group,
        "p": p,
        "left_ns": wait.begin_ns,
        "limit_ns": wait.end_ns,
        "reassigned_ns": min(later, default=None),
        "died": died,
    }


def _events(run_dir: Path, small: SmallEvidence) -> Events:
    """Event, time and session of each assignment and revocation, by group and partition."""
    events: Events = defaultdict(list)
    for row in evidence.rows(run_dir, "assignments"):
        p = small.numbers.get((row["topic_id"], row["partition"]))
        is_complete = None not in (row["at_ns"], row["session"], row["group"])
        if p is not None and is_complete and row["event"] in ("assigned", "revoked", "lost"):
            session = (row["client"], row["session"])
            events[row["group"], p].append((row["at_ns"], row["event"], session))
    return events


def disturbances(small: SmallEvidence, but: Effect) -> list[Interval]:
    """Faults with any other effect, and changes of the group's coordinator."""
    disturbed = [acting_interval(fault) for fault in small.faults if not has_only(fault, {but})]
    for spans in small.spans.values():
        if spans[0].topic == OFFSETS_TOPIC:
            disturbed += [
                Interval(span.begin_ns, span.begin_ns + 1) for span in spans if span.begins_epoch
            ]
    return disturbed
