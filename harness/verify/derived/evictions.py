"""Members that lost their membership although they lived: rows of the table `evictions`.

A consumer that polls also sends heartbeats, and must be kept in its group. A finding requires
several evictions of one member, each after polls all through its session timeout, and each long
after any fault and any change of the group's coordinator.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.impact import Stretch, acting_stretch
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.derived.undisturbed_intervals import (
    Who,
    beats_of,
    end_of_load_ns,
    session_timeout_ns,
)
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.internal_topics import OFFSETS_TOPIC

TIMES = 3
"""A broker that was held up for a whole session puts everybody out; once."""
SLACK_NS = 5_000_000_000


def eviction_rows(
    run_dir: Path, small: SmallEvidence, scenario: Scenario, facts: RunFacts
) -> list[Row]:
    """Rows of `evictions`: a member each, how often it was put out, first and last."""
    if facts.runtime == IMPORTED:
        return []
    session_ns = session_timeout_ns(scenario)
    limit_ns, disturbed = end_of_load_ns(facts), _disturbances(small, session_ns + SLACK_NS)
    lost = {
        who: (p, [at for at in times if at < limit_ns and not _is_disturbed(at, disturbed)])
        for who, (p, times) in _eviction_times(run_dir, small).items()
    }
    lost = {who: losses for who, losses in lost.items() if len(losses[1]) >= TIMES}
    beats = beats_of(run_dir, set(lost), small.numbers)
    rows: list[Row] = []
    for who, (p, times) in sorted(lost.items()):
        polls = sorted(beats[who].polls) if who in beats else []
        lived = [
            at for at in times if _polled_steadily(polls, at - session_ns, at, session_ns // 3)
        ]
        if len(lived) >= TIMES:
            rows.append(
                {"n": len(rows), "client": who[0], "p": p, "evictions": len(lived)}
                | {"from_ns": min(lived), "to_ns": max(lived)}
            )
    return rows


def _eviction_times(run_dir: Path, small: SmallEvidence) -> dict[Who, tuple[int, list[int]]]:
    """When members learned of their eviction, each with one of their partitions."""
    times: dict[Who, set[int]] = defaultdict(set)
    places: dict[Who, int] = {}
    for row in evidence.rows(run_dir, "assignments"):
        p = small.numbers.get((row["topic_id"], row["partition"]))
        if row["event"] != "lost" or p is None or None in (row["at_ns"], row["session"]):
            continue
        who = (row["client"], row["session"])
        times[who].add(row["at_ns"])
        places[who] = min(places.get(who, p), p)
    return {who: (places[who], sorted(own_times)) for who, own_times in times.items()}


def _disturbances(small: SmallEvidence, after_ns: int) -> list[Stretch]:
    """Every fault and every change of a coordinator, each with so much time after it."""
    disturbed = [acting_stretch(fault) for fault in small.faults]
    for spans in small.spans.values():
        if spans[0].topic == OFFSETS_TOPIC:
            disturbed += [
                Stretch(span.begin_ns, span.begin_ns) for span in spans if span.begins_epoch
            ]
    return [Stretch(stretch.begin_ns, stretch.end_ns + after_ns) for stretch in disturbed]


def _is_disturbed(at_ns: int, disturbed: list[Stretch]) -> bool:
    return any(stretch.begin_ns <= at_ns <= stretch.end_ns for stretch in disturbed)


def _polled_steadily(polls: list[int], from_ns: int, to_ns: int, gap_ns: int) -> bool:
    """Whether no longer than `gap_ns` passed without a poll."""
    within = [from_ns, *(at for at in polls if from_ns < at < to_ns), to_ns]
    return all(after - at <= gap_ns for at, after in pairwise(within))
