"""Members that a new coordinator evicted right after it took over: more rows of `evictions`.

A group's members are in the offsets topic, on every in-sync replica, before they learn their
generation. A new coordinator reads them there, and gives each a whole session from then on
(`GroupCoordinator.onGroupLoaded`). Members are judged that were undisturbed for so long that no
request of theirs was under way, where brokers died or resigned and nothing else acted.
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
from urteil.harness.verify.derived.impact import Stretch, acting_stretch
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.derived.undisturbed_intervals import (
    Who,
    beats_of,
    end_of_load_ns,
    session_timeout_ns,
)
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.internal_topics import OFFSETS_TOPIC
from urteil.harness.verify.limits import SECOND_NS

OFFICES = ENDS_NODES | {Effect.RESTARTS_NODES, Effect.MOVES_LEADERS}
"""Effects of faults by which an office goes from a broker that has received everything to another
one that has it all."""
ALONE_NS = 5 * SECOND_NS
SLACK_NS = 3 * SECOND_NS
"""ZooKeeper's clock may be two seconds beside the lab's."""

Event = tuple[int, str, Who, int]
"""When, what, to whose session, and of which partition."""


def takeover_rows(
    run_dir: Path, small: SmallEvidence, scenario: Scenario, facts: RunFacts
) -> list[Row]:
    """A row for each member that lost all it had right after a new coordinator's begin."""
    if facts.runtime == IMPORTED:
        return []
    session_ns, events = session_timeout_ns(scenario), _events(run_dir, small)
    offices, limit_ns = _offices(small), end_of_load_ns(facts)
    stall_ns = MembershipOptions.of(scenario.workload).max_poll_interval_ms * 1_000_000 - SECOND_NS
    lost_offices = [
        (who, p, office, at_ns)
        for group, group_events in events.items()
        for at_ns, what, who, p in group_events
        if what == "lost" and at_ns < limit_ns
        for office in _recent_terms(group, offices, at_ns, session_ns - SLACK_NS)
        if _was_undisputed(small, group, group_events, who, Stretch(office.begin_ns, at_ns))
    ]
    beats = beats_of(run_dir, {who for who, *_ in lost_offices}, small.numbers)
    rows: dict[Who, Row] = {}
    for who, p, office, at_ns in lost_offices:
        polls = beats[who].polls if who in beats else []
        if any(at_ns - stall_ns < poll <= at_ns for poll in polls):  # else it left by itself
            row = {"client": who[0], "p": p, "evictions": 1, "leader": office.leader}
            rows.setdefault(who, row | {"from_ns": office.begin_ns, "to_ns": at_ns})
    return list(rows.values())


def _events(run_dir: Path, small: SmallEvidence) -> dict[str, list[Event]]:
    """What was given and taken by group, in order; static members have sessions of their own."""
    plain = {(row["client"], row["session"]) for row in small.clients if row["instance"] is None}
    by_group: dict[str, list[Event]] = defaultdict(list)
    for row in evidence.rows(run_dir, "assignments"):
        p = small.numbers.get((row["topic_id"], row["partition"]))
        who = (row["client"], row["session"])
        is_complete = p is not None and None not in (row["at_ns"], row["group"]) and who in plain
        if is_complete and row["event"] in ("assigned", "revoked", "lost"):
            by_group[row["group"]].append((row["at_ns"], row["event"], who, p or 0))
    return {group: sorted(events) for group, events in by_group.items()}


def _offices(small: SmallEvidence) -> dict[int, list[Span]]:
    """The spans of the offsets topic's partitions, by their numbers."""
    return {
        int(spans[0].path.split("/")[-2]): spans
        for spans in small.spans.values()
        if spans[0].topic == OFFSETS_TOPIC
    }


def _recent_terms(
    group: str, offices: dict[int, list[Span]], at_ns: int, within_ns: int
) -> Iterator[Span]:
    """The office of whoever had begun to coordinate the group that short before, and had not
    before, by a clean election."""
    spans = offices.get(coordinating_partition(group, len(offices)), []) if offices else []
    for span in spans:
        before = span.previous
        if before is None or not span.begins_epoch or span.unclean or span.leader < 0:
            continue
        if before.leader != span.leader and 0 <= at_ns - span.begin_ns < within_ns:
            yield span


def _was_undisputed(
    small: SmallEvidence, group: str, events: list[Event], who: Who, stretch: Stretch
) -> bool:
    """Whether the member had what it lost for long, and only offices changed hands since then."""
    before = [event for event in events if event[0] <= stretch.begin_ns]
    mine = [event for event in before if event[2] == who]
    if not mine or mine[-1][1] != "assigned" or before[-1][0] > stretch.begin_ns - ALONE_NS:
        return False
    since = Stretch(mine[-1][0] - ALONE_NS, stretch.end_ns)
    if any(not has_only(f, OFFICES) and acting_stretch(f).meets(since) for f in small.faults):
        return False
    times = [
        row[end]
        for row in small.clients
        for end in ("begin_ns", "end_ns")
        if row["group"] == group and row[end] is not None
    ]
    return not any(before[-1][0] < at <= stretch.end_ns for at in times)
