"""Administrative requests that the cluster accepted and must finish: reassignments and deletions.

A task finishes by itself while every broker is up and nothing prevents it. An election of preferred
leaders is finished when the controller answers it (KIP-460). Other modules contain related
promises: leaders return to preferred replicas (`leader_balance`) and leave a broker before it shuts
down (`handover`), replicas stay in sync (`isr_shrinks`), a partition has a leader while an eligible
replica lives (`leaderless_partitions`), and a former leader leaves the ISR (`former_leaders`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from urteil.chaos.admin_controls import ActFailed
from urteil.harness.scenario import RunFacts, Scenario
from urteil.harness.verify.derived.fault_effects import ADMIN_TASKS, OF_DISKS, has_any
from urteil.harness.verify.derived.former_leaders import departed_leader_rows
from urteil.harness.verify.derived.handover import handover_rows
from urteil.harness.verify.derived.impact import acting_interval, load_of
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.derived.isr_shrinks import isr_shrink_rows
from urteil.harness.verify.derived.leader_balance import balance_rows
from urteil.harness.verify.derived.leaderless_partitions import leaderless_rows, passed_over_rows
from urteil.harness.verify.derived.small_evidence import SmallEvidence
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import CLOCK_SLACK_NS, FOREVER_NS, SECOND_NS

CANCEL = "cancel moves"
REQUEST_S = 30.0
"""The time limit of tasks that need one request to each broker: deletions, and the end of a
reassignment whose target replicas are all in sync."""
_TOPICS, _DELETIONS = "/brokers/topics/", "/admin/delete_topics/"
_PRESENCE = ("/brokers/ids/", "/controller")


def admin_task_rows(small: SmallEvidence, scenario: Scenario, facts: RunFacts) -> list[Row]:
    """Rows of the table `cluster_tasks`. A task is `late` where it exceeded its limit during one
    undisturbed interval: every broker was registered, and no fault acted."""
    end_ns = max((phase.end_ns for phase in facts.phases), default=0)
    load_ns = load_of(facts).end_ns  # later the lab itself moves leaders, for the final reads
    by_partition: dict[tuple[str, str], Row] = {}
    for undisturbed in _undisturbed_intervals(small, end_ns):
        moved_ns = min(undisturbed.end_ns, load_ns)
        for to_ns, rows in (
            (undisturbed.end_ns, _deletions(_last_versions(small, undisturbed.end_ns))),
            (moved_ns, _moves(small, _last_versions(small, moved_ns), moved_ns, scenario)),
            (moved_ns, balance_rows(small, scenario, _last_versions(small, moved_ns))),
            (undisturbed.end_ns, isr_shrink_rows(small, scenario, undisturbed)),
        ):
            for row in rows:
                from_ns = max(row["from_ns"], undisturbed.begin_ns)
                late = row["shortfall"] is not None and to_ns - from_ns > row["limit_s"] * SECOND_NS
                key = row["kind"], row["task"]
                if key not in by_partition or not by_partition[key]["late"]:
                    by_partition[key] = row | {
                        "from_ns": from_ns,
                        "to_ns": to_ns,
                        "late": int(late),
                    }
                    by_partition[key]["p"] = small.numbers.get(row["key"])
    ignored = _ignored_acts(small.ops, list(_undisturbed_intervals(small, end_ns)))
    led = [*leaderless_rows(small, scenario, load_ns), *passed_over_rows(small, scenario, load_ns)]
    led += departed_leader_rows(small.states, small.numbers, end_ns)
    return [*by_partition.values(), *ignored, *_elections(small), *handover_rows(small), *led]


def _ignored_acts(ops: Sequence[Row], intervals: Sequence[Interval]) -> Iterator[Row]:
    """Requests that no error answered, and that had no visible effect for as long as the lab
    waits."""
    for op in ops:
        is_ignored = f'{ActFailed.UNHEEDED}"' in str(op["after"])
        if op["outcome"] == "info" and is_ignored and op["complete_ns"] is not None:
            lasted = Interval(op["invoke_ns"], op["complete_ns"])
            yield {
                "kind": "not done", "p": None, "from_ns": lasted.begin_ns, "to_ns": lasted.end_ns,
                "task": f"to {op['act']} {op['subject']}, and no error was returned",
                "shortfall": "it was not done", "limit_s": REQUEST_S,
                "late": int(any(_spans(interval, lasted) for interval in intervals)),
            }  # fmt: skip


def _spans(undisturbed: Interval, interval: Interval) -> bool:
    return undisturbed.begin_ns <= interval.begin_ns and interval.end_ns <= undisturbed.end_ns


def _elections(small: SmallEvidence) -> Iterator[Row]:
    """Elections of preferred leaders that succeeded by their responses: each leader must have led
    for a moment, by ZooKeeper's clock."""
    versions: dict[str, list[Row]] = {}
    for row in sorted(small.states, key=lambda row: int(row["zxid"])):
        versions.setdefault(str(row["path"]), []).append(row)
    for op in small.ops:
        for (topic, p), leader in _elected_leaders(op).items():
            known = versions.get(f"{_TOPICS}{topic}/partitions/{p}/state", [])
            ends = [*(row["at_ns"] for row in known[1:]), FOREVER_NS]
            election = Interval(
                op["invoke_ns"] - CLOCK_SLACK_NS, op["complete_ns"] + CLOCK_SLACK_NS
            )
            led = [
                row["leader"]
                for row, end_ns in zip(known, ends, strict=False)
                if row["leader"] is not None and Interval(row["at_ns"], end_ns).meets(election)
            ]
            if led:
                late = leader not in led
                yield {
                    "kind": "not elected", "p": small.numbers.get((known[-1]["topic_id"], int(p))),
                    "from_ns": op["invoke_ns"], "to_ns": op["complete_ns"],
                    "task": f"that broker {leader} lead {topic}-{p} as its preferred leader",
                    "shortfall": f"broker {led[0]} led all the time" if late else None,
                    "limit_s": 0.0, "late": int(late),
                }  # fmt: skip


def _elected_leaders(op: Row) -> dict[tuple[str, str], int]:
    """The preferred leader of each topic and partition that a successful response names."""
    if op["act"] != "elect preferred" or op["outcome"] != "ok" or op["complete_ns"] is None:
        return {}
    report: Any = json.loads(op["after"] or "{}")
    partitions = report.get("partitions", [])
    suffix = f"-{partitions[0]}" if len(partitions) == 1 else ""
    topic = str(op["subject"]).removesuffix(suffix)
    leaders = report.get("elected", {})
    return {(topic, p): int(node.removeprefix("b")) for p, node in leaders.items()}


def _undisturbed_intervals(small: SmallEvidence, end_ns: int) -> Iterator[Interval]:
    """Intervals between two events that disturb tasks: a fault, or a change of the brokers or the
    controller. There is none while a broker is down or a disk may be damaged."""
    present = [row for row in small.states if (row["path"] or "").startswith(_PRESENCE)]
    busy = [Interval(row["at_ns"], row["at_ns"]) for row in present]
    for fault in small.faults:
        if fault["acted"] and not has_any(fault, ADMIN_TASKS):
            until_ns = FOREVER_NS if has_any(fault, OF_DISKS) else acting_interval(fault).end_ns
            busy.append(Interval(fault["begin_ns"], until_ns if fault["healed_ns"] else FOREVER_NS))
    since_ns = None
    for interval in sorted(
        [*busy, Interval(end_ns, end_ns)], key=lambda interval: interval.begin_ns
    ):
        if since_ns is not None and since_ns < interval.begin_ns <= end_ns:
            here = {row["path"]: row["version"] for row in _until(present, interval.begin_ns - 1)}
            if here and -1 not in here.values():
                yield Interval(since_ns, interval.begin_ns)
        since_ns = max(since_ns or interval.end_ns, interval.end_ns)


def _until(rows: Sequence[Row], at_ns: int) -> list[Row]:
    earlier = [row for row in rows if row["at_ns"] <= at_ns]
    return sorted(earlier, key=lambda row: int(row["zxid"]))


def _last_versions(small: SmallEvidence, at_ns: int) -> dict[str, Row]:
    """The last version of each znode at that time."""
    return {str(row["path"]): row for row in _until(small.states, at_ns)}


def _deletions(last: dict[str, Row]) -> Iterator[Row]:
    """Topics marked for deletion; the mark disappears with the topic."""
    for path, row in last.items():
        if path.startswith(_DELETIONS):
            shortfall = None if row["version"] == -1 else "it still exists"
            yield {
                "kind": "not deleted", "key": (row["topic_id"], 0), "from_ns": row["at_ns"],
                "task": f"that {path.removeprefix(_DELETIONS)} be deleted", "shortfall": shortfall,
                "limit_s": REQUEST_S,
            }  # fmt: skip


def _moves(
    small: SmallEvidence, last: dict[str, Row], at_ns: int, scenario: Scenario
) -> Iterator[Row]:
    """The last acknowledged reassignment, or its cancellation, of each partition of a topic that
    still exists. A cancellation may leave the old replicas in another order."""
    due_s = scenario.recovery_deadline_s
    for topic, ops in _requested_reassignments(small.ops, at_ns).items():
        node = last.get(_TOPICS + topic)
        if node is None or node["version"] == -1 or _DELETIONS + topic in last:
            continue
        replicas = json.loads(node["replicas"] or "{}")
        moves = {p: (op, target) for op in ops for p, target in _targets(op).items()}
        for p, (op, target) in moves.items():
            state = last.get(f"{_TOPICS}{topic}/partitions/{p}/state")
            if state is None or p not in replicas:
                continue
            if target is None:
                continue
            in_sync = set(target) <= set(json.loads(state["isr"] or "[]"))
            cancelled = op["act"] == CANCEL
            done = sorted(replicas[p]) == sorted(target) if cancelled else replicas[p] == target
            on = f"back on {target}, its move cancelled" if cancelled else f"on {target}"
            yield {
                "kind": "not moved",
                "key": (node["topic_id"], int(p)),
                "from_ns": max(op["complete_ns"], state["at_ns"] if in_sync else 0),
                "task": f"that {topic}-{p} be {on}",
                "shortfall": None if done else f"it is on {replicas[p]}",
                "limit_s": min(REQUEST_S, due_s) if in_sync else due_s,
            }


def _targets(op: Row) -> dict[str, list[int] | None]:
    """The requested replicas of each partition; None where the controller rejected a cancellation.
    Empty for an act that is not in the lab's format."""
    try:
        requested: Any = json.loads(op["after"] or "{}")
        return {
            p: None if nodes is None else [int(str(node).removeprefix("b")) for node in nodes]
            for p, nodes in requested.items()
        }
    except (ValueError, AttributeError, TypeError):
        return {}


def _requested_reassignments(ops: Sequence[Row], at_ns: int) -> dict[str, list[Row]]:
    """The reassignments of each topic until `at_ns`, in order, if all of them were acknowledged."""
    reassignments: dict[str, list[Row]] = {}
    for op in sorted(ops, key=lambda op: int(op["invoke_ns"] or 0)):
        if op["act"] in ("reassign", CANCEL) and (op["invoke_ns"] or 0) <= at_ns:
            reassignments.setdefault(op["subject"], []).append(op)
    return {
        topic: acts
        for topic, acts in reassignments.items()
        if all(op["outcome"] == "ok" and op["complete_ns"] is not None for op in acts)
    }
