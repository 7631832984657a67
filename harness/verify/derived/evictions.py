"""Live members that lost their membership: rows of the table `evictions`.

A consumer that polls also sends heartbeats, and must stay in its group. A finding requires several
evictions of one member, each after polls throughout its session timeout, and each long after any
fault and any change of the group's coordinator.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.derived.undisturbed_intervals import (
    Session,
    end_of_load_ns,
    polls_by_session,
    session_timeout_ns,
)
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.internal_topics import OFFSETS_TOPIC

TIMES = 3
"""The number of evictions that a finding requires. A broker that was stalled for a session timeout
evicts all members once."""
SLACK_NS = 5_000_000_000


def eviction_rows(
    run_dir: Path, small: SmallEvidence, scenario: Scenario, facts: RunFacts
) -> list[Row]:
    """Rows of `evictions`: a member, the number of its evictions, and the first and the last
    one."""
    if facts.runtime == IMPORTED:
        return []
    session_ns = session_timeout_ns(scenario)
    limit_ns, disturbed = end_of_load_ns(facts), _disturbances(small, session_ns + SLACK_NS)
    lost = {
        session: (p, [at for at in times if at < limit_ns and not _is_disturbed(at, disturbed)])
        for session, (p, times) in _eviction_times(run_dir, small).items()
    }
    lost = {session: losses for session, losses in lost.items() if len(losses[1]) >= TIMES}
    polls_of = polls_by_session(run_dir, set(lost), small.numbers)
    rows: list[Row] = []
    for session, (p, times) in sorted(lost.items()):
        polls = sorted(polls_of[session].polls) if session in polls_of else []
        lived = [
            at for at in times if _polled_steadily(polls, at - session_ns, at, session_ns // 3)
        ]
        if len(lived) >= TIMES:
            rows.append(
                {"n": len(rows), "client": session[0], "p": p, "evictions": len(lived)}
                | {"from_ns": min(lived), "to_ns": max(lived)}
            )
    return rows


def _eviction_times(run_dir: Path, small: SmallEvidence) -> dict[Session, tuple[int, list[int]]]:
    """The times at which members learned of their eviction, and one of their partitions."""
    times: dict[Session, set[int]] = defaultdict(set)
    places: dict[Session, int] = {}
    for row in evidence.rows(run_dir, "assignments"):
        p = small.numbers.get((row["topic_id"], row["partition"]))
        if row["event"] != "lost" or p is None or None in (row["at_ns"], row["session"]):
            continue
        session = (row["client"], row["session"])
        times[session].add(row["at_ns"])
        places[session] = min(places.get(session, p), p)
    return {session: (places[session], sorted(own_times)) for session, own_times in times.items()}


def _disturbances(small: SmallEvidence, after_ns: int) -> list[Interval]:
    """Every fault and every change of a coordinator, each extended by `after_ns`."""
    disturbed = [acting_interval(fault) for fault in small.faults]
    for spans in small.spans.values():
        if spans[0].topic == OFFSETS_TOPIC:
            disturbed += [
                Interval(span.begin_ns, span.begin_ns) for span in spans if span.begins_epoch
            ]
    return [Interval(interval.begin_ns, interval.end_ns + after_ns) for interval in disturbed]


def _is_disturbed(at_ns: int, disturbed: list[Interval]) -> bool:
    return any(interval.begin_ns <= at_ns <= interval.end_ns for interval in disturbed)


def _polled_steadily(polls: list[int], from_ns: int, to_ns: int, gap_ns: int) -> bool:
    """Whether at most `gap_ns` passed between two polls."""
    within = [from_ns, *(at for at in polls if from_ns < at < to_ns), to_ns]
    return all(after - at <= gap_ns for at, after in pairwise(within))
