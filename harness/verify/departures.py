"""Members that left a group which lives on: rows of the table `departures`.

Who leaves says so (LeaveGroup; static members do not), and the others have its partitions as soon
as they have heard of it by their next heartbeats. A coordinator that did not listen waits for the
one who is gone until its session runs out. So this is judged where sessions are long: half of one
is enough for a rebalance.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.calms import end_of_load_ns, session_timeout_ns
from urteil.harness.verify.coordinators import OFFSETS_TOPIC
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.impact import SECOND_NS, Stretch, acting
from urteil.harness.verify.small import Small

STORM = "rebalance_storm"
LONG_NS = 15 * SECOND_NS
LEAVING_NS = 5 * SECOND_NS
"""From giving its partitions back to its end, at most: it left, and was not thrown out."""


def departures(run_dir: Path, small: Small, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """A row for each partition that a member gave back when it left, with `taken_ns`, when somebody
    was given it next, and `limit_ns`, until when somebody had to be. Left out is what any fault but
    those that let members join and leave, or a change of the group's coordinator, came upon."""
    session_ns = session_timeout_ns(scenario)
    if facts.runtime == IMPORTED or session_ns < LONG_NS:
        return []
    bound_ns = session_ns // 2
    ends: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    for row in small.clients:
        is_static = row["instance"] is not None  # such a member says nothing when it ends
        if row["kind"] == "group" and row["end_ns"] is not None and not is_static:
            ends[row["group"]][row["client"], row["session"]] = row["end_ns"]
    disturbed, end_ns = _disturbances(small), end_of_load_ns(facts)
    rows: list[Row] = []
    for (group, p), events in sorted(_events(run_dir, small).items()):
        for at_ns, event, who in events:
            left = event == "revoked" and 0 <= ends[group].get(who, 0) - at_ns <= LEAVING_NS
            wait = Stretch(at_ns, at_ns + bound_ns)
            if not left or wait.end_ns > end_ns or any(one.meets(wait) for one in disturbed):
                continue
            if not any(mate != who and end > wait.end_ns for mate, end in ends[group].items()):
                continue
            later = (ns for ns, what, _ in events if what == "assigned" and ns > at_ns)
            rows.append(
                {"n": len(rows), "who": who[0], "grp": group, "p": p, "left_ns": at_ns}
                | {"limit_ns": wait.end_ns, "taken_ns": min(later, default=None)}
            )
    return rows


def _events(
    run_dir: Path, small: Small
) -> dict[tuple[str, int], list[tuple[int, str, tuple[str, int]]]]:
    """What was given and taken when, and whose session it was, by group and partition."""
    found: dict[tuple[str, int], list[tuple[int, str, tuple[str, int]]]] = defaultdict(list)
    for row in evidence.rows(run_dir, "assignments"):
        p = small.numbers.get((row["topic_id"], row["partition"]))
        if p is not None and None not in (row["at_ns"], row["session"], row["group"]):
            who = (row["client"], row["session"])
            found[row["group"], p].append((row["at_ns"], row["event"], who))
    return found


def _disturbances(small: Small) -> list[Stretch]:
    found = [acting(fault) for fault in small.faults if fault["fault"] != STORM]
    for spans in small.spans.values():
        if spans[0].topic == OFFSETS_TOPIC:
            found += [Stretch(one.begin_ns, one.begin_ns + 1) for one in spans if one.begins_epoch]
    return found
