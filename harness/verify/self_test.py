"""The self-test of a judgement (printed as `canary`): damages that the verifier must find.

A part of the run's evidence is copied, every damage of `damage/` is applied to the copy, and the
guarantees judge it on DuckDB. A damage without its finding keeps the verdict from `PASS`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Set
from pathlib import Path

import msgspec

from urteil.chaos.capabilities import describe_missing
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import Phase, RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.check import Places, check
from urteil.harness.verify.damage import (
    DAMAGES,
    MADE_UP_SETTINGS,
    MADE_UP_TOPICS,
    Copy,
    Trace,
    Untried,
    mirror_of,
)
from urteil.harness.verify.damage.copy import brokers
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.derived.writable_intervals import stall_bound_ns
from urteil.harness.verify.engines.engine import Duck, open_views
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.result import GuaranteeResult

GROUPS = ("assignments", "commits", "commit_reads")
SLOTS = 400
SLOTS_IN_TRANSACTIONS = 1_000
ENOUGH = 6
FINDINGS = 10_000
S = 1_000_000_000
_AFTER_NS = 600 * S
_ONE_VIOLATION: Row = {"opportunities": 0, "violations": 1, "permitted": 0}
"""Counts with which a check fetches findings without counting them first."""


def run_self_test(
    run_dir: Path, scenario: Scenario, facts: RunFacts, derived: Derived
) -> dict[str, str]:
    """Apply each damage to a copy of a part of the evidence. Returns the outcomes by damage.

    An outcome is `found`, or a sentence: `not tried: ...` if the run lacks the evidence, such as a
    second replica or a consumer. If no damage could be tried, the only entry is `canary`.
    """
    if "replicas" in facts.withheld:
        return {"canary": "not tried: the target gives no logs of its replicas"}
    work = run_dir / "work" / "canary"
    shutil.rmtree(work, ignore_errors=True)
    try:
        return _apply_damages(run_dir, work, scenario, facts, derived)
    except Exception as failure:
        text = " ".join(str(failure).split())[:300]
        return {"canary": f"raised {type(failure).__name__}: {text}"}
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _apply_damages(
    run_dir: Path, work: Path, scenario: Scenario, facts: RunFacts, derived: Derived
) -> dict[str, str]:
    excerpt = _copy_excerpt(run_dir, work / "cut", derived)
    if excerpt is None:
        return {"canary": "no partition has enough records that everybody has"}
    copy, part = excerpt
    changed_scenario, changed_facts = _arrange(copy, scenario, facts, part)
    outcomes: dict[str, str] = {}
    traces: dict[str, Trace] = {}
    for damage in DAMAGES:
        try:
            trace = damage(copy)
        except Untried as reason:
            outcomes[damage.name] = f"not tried: {reason}"
            continue
        if lack := describe_missing(GUARANTEES[trace.guarantee].requires, facts.lacks):
            outcomes[damage.name] = f"not tried: {lack}"
        else:
            traces[damage.name] = trace
    guarantees = frozenset(trace.guarantee for trace in traces.values())
    results = judge_copy(
        work / "run", copy, changed_scenario, changed_facts, only=guarantees, counted=False
    )
    for name, trace in traces.items():
        outcomes[name] = (
            "found" if is_found(results, trace) else f"{trace.guarantee} did not find it"
        )
    return outcomes


def is_found(results: dict[str, GuaranteeResult], trace: Trace) -> bool:
    """Whether the findings contain the trace of a damage, permitted or not."""
    return any(
        finding.sub_kind.startswith(trace.sub_kind) and trace.offset in (None, finding.offset)
        for finding in results[trace.guarantee].findings
    )


def judge_copy(
    run_dir: Path,
    copy: Copy,
    scenario: Scenario,
    facts: RunFacts,
    *,
    only: Set[str],
    counted: bool = True,
) -> dict[str, GuaranteeResult]:
    """Judge a copy by the guarantees `only`, on DuckDB, and keep every finding. Unless `counted`,
    findings are fetched without counting them first."""
    from urteil.harness.verify import judgement, shared_tables

    for name, rows in copy.tables.items():
        evidence.write_rows(run_dir / "evidence" / name, SCHEMAS[name], rows)
    work = run_dir / "work"
    derived = judgement.prepare(run_dir, scenario, facts)
    engine = Duck(work, threads=1)
    try:
        open_views(engine, run_dir, derived)
        shared_tables.build(engine, logless=derived.logless, expected=derived.expected)
        present = {name for name, rows in copy.tables.items() if rows}
        places = Places(derived)
        return {
            name: check(
                engine, guarantee, places, present, FINDINGS, None if counted else _ONE_VIOLATION
            )
            for name, guarantee in GUARANTEES.items()
            if name in only
        }
    finally:
        engine.close()


def _arrange(
    copy: Copy, scenario: Scenario, facts: RunFacts, part: Row
) -> tuple[Scenario, RunFacts]:
    """A scenario and facts for the copy, under which every damage is a violation."""
    from urteil.harness.verify.derived.impact import grace_ns
    from urteil.harness.verify.derived.undisturbed_intervals import group_bound_ns

    names = {"min.insync.replicas": str(min(2, part["replication"]))}
    names |= {"unclean.leader.election.enable": "false", "cleanup.policy": "delete"}
    names |= {"message.timestamp.type": "CreateTime"}
    several = max(3, scenario.cluster.brokers)
    settings = scenario.cluster.config | MADE_UP_SETTINGS
    cluster = msgspec.structs.replace(
        scenario.cluster, brokers=several, config=settings, racks=False
    )
    options = {k: v for k, v in scenario.workload.options.items() if k != "compression_type"}
    plain = msgspec.structs.replace(scenario.workload, kind="append", topics=(), options=options)
    changed = msgspec.structs.replace(
        scenario,
        cluster=cluster,
        workload=plain,
        survives=True,
        permits=(),
        recovery_deadline_s=5.0,
    )
    topics = [
        msgspec.structs.replace(topic, config=topic.config | names)
        for topic in facts.topics
        if topic.topic_id == part["topic_id"]
    ]
    topics += map(mirror_of, topics[:1])
    topics += [
        msgspec.structs.replace(topic, replication_factor=len(brokers(copy)))
        for topic in MADE_UP_TOPICS
    ]
    copy.grace_ns, copy.still_ns = grace_ns(changed), group_bound_ns(changed)
    copy.stall_ns = stall_bound_ns(changed)
    begin_ns = min(row["invoke_ns"] for row in copy.rows("sends"))
    load = Phase(name="during", begin_ns=begin_ns, end_ns=copy.last_ns + _AFTER_NS)
    # Not as an import: some guarantees do not judge histories that others recorded.
    return changed, msgspec.structs.replace(facts, topics=topics, phases=[load], runtime="process")


def _copy_excerpt(run_dir: Path, work: Path, derived: Derived) -> tuple[Copy, Row] | None:
    """Copy the rows about the last records of a large partition from every table."""
    engine = Duck(work)
    try:
        for name in ("sends", "reads", "replicas"):
            engine.view(name, run_dir / "evidence" / name, SCHEMAS[name])
        for part in _largest_partitions(derived):
            copy = _cut_copy(engine, run_dir, derived, part)
            if copy is not None:
                return copy, part
        return None
    finally:
        engine.close()


def _largest_partitions(derived: Derived) -> list[Row]:
    """The two partitions with the most replicas and records."""
    own = [part for part in derived.partitions if part["in_run"] and part["has_log"]]

    def order(part: Row) -> tuple[int, int, int]:
        return part["copies"], part["compacted"], part["log_start"] - part["committed_end"]

    return sorted(own, key=order)[:2]


def _cut_copy(engine: Duck, run_dir: Path, derived: Derived, part: Row) -> Copy | None:
    logs = [row for row in derived.tables["logs_p"] if row["p"] == part["p"]]
    high = min([part["committed_end"], part["seen_end"] or 0, *(row["log_end"] for row in logs)])
    in_transactions = evidence.row_count(run_dir, "txns") > 0
    records = SLOTS_IN_TRANSACTIONS if in_transactions else SLOTS
    low = max(part["log_start"], _first_offset(engine, part, high, records))
    passes = [row for row in evidence.rows(run_dir, "passes") if concerns_partition(row, part)]
    low, high = _longest_pass(passes, low, high)
    here = (
        f"copies.topic_id = '{part['topic_id']}' AND copies.partition = {part['partition']}"
        f" AND copies.offset >= {low} AND copies.offset < {high}"
    )
    led = (
        f"SELECT copies.value_id FROM replicas copies WHERE {here}"
        f" AND copies.broker = {part['final_leader']}"
    )
    tables = {
        name: engine.query(f"SELECT copies.* FROM {name} copies WHERE {here}")
        for name in ("reads", "replicas")
    }
    tables["sends"] = engine.query(f"SELECT sends.* FROM sends WHERE sends.value_id IN ({led})")
    for name in ("clients", "logs", "passes", *GROUPS):
        tables[name] = [
            row for row in evidence.rows(run_dir, name) if concerns_partition(row, part)
        ]
    _clip(tables, low, high, derived)
    _remove_transactions(tables)
    _acknowledge_all(tables, part)
    if not tables["sends"]:
        return None
    tables["states"] = [_only_state(tables["sends"], part, [row["broker"] for row in logs])]
    copy = Copy(tables)
    copy.victims = _victims(copy, len(logs))
    copy.last_ns = max(row["complete_ns"] for row in tables["sends"])
    copy.partitions = sum(other["topic_id"] == part["topic_id"] for other in derived.partitions)
    return copy if len(copy.victims) >= ENOUGH else None


def _first_offset(engine: Duck, part: Row, high: int, records: int) -> int:
    """The offset of the first of the last `records` records below `high` in the final leader's log,
    which compaction may have thinned out; `high` if there are none."""
    (row,) = engine.query(
        "SELECT MIN(last_offsets.offset) AS low FROM (SELECT replicas.offset FROM replicas"
        f" WHERE replicas.topic_id = '{part['topic_id']}' "
        f"AND replicas.partition = {part['partition']}"
        f" AND replicas.broker = {part['final_leader']} AND replicas.offset < {high}"
        f" ORDER BY replicas.offset DESC LIMIT {records}) last_offsets"
    )
    return high if row["low"] is None else int(row["low"])


def _longest_pass(passes: list[Row], low: int, high: int) -> tuple[int, int]:
    """The longest part of [low, high) that one final pass read: several may share a partition."""
    ranges = [
        (max(low, row["from_offset"] or 0), min(high, row["to_offset"]))
        for row in passes
        if row["final"] and row["complete"]
    ]
    return max(ranges, key=lambda bounds: bounds[1] - bounds[0], default=(low, high))


def concerns_partition(row: Row, part: Row) -> bool:
    if "topic_id" not in row:
        return True
    return bool(row["topic_id"] == part["topic_id"] and row["partition"] == part["partition"])


def _clip(tables: dict[str, list[Row]], low: int, high: int, derived: Derived) -> None:
    """Set the bounds of logs and passes to those of the excerpt. Incomplete passes are removed."""
    for row in tables["logs"]:
        row |= {"log_start": low, "log_end": high, "high_watermark": high}
    tables["passes"] = [
        row | {"from_offset": low, "to_offset": high}
        for row in tables["passes"]
        if row["final"] and row["complete"] and row["client"] not in derived.damaged
        if row["from_offset"] <= low and row["to_offset"] >= high
    ]


def _remove_transactions(tables: dict[str, list[Row]]) -> None:
    """Turn committed records into plain ones and the others into markers: damages add their own
    transactions."""
    committed = {_pass(row) for row in tables["passes"] if row["isolation"] == "read_committed"}
    shown = {row["value_id"] for row in tables["reads"] if _pass(row) in committed}
    hidden = {
        row["value_id"]
        for row in tables["replicas"]
        if committed and row["transactional"] and row["control"] is None
        if row["value_id"] not in shown
    }
    for row in tables["replicas"]:
        row["transactional"] = False
        if row["value_id"] in hidden:
            row |= {"value_id": None, "key": None, "control": "abort"}
    for name in ("sends", "reads"):
        tables[name] = [row for row in tables[name] if row["value_id"] not in hidden]
    for row in tables["sends"]:
        row["txn"] = None


def _pass(row: Row) -> tuple[str, int, int]:
    return row["client"], row["session"], row["pass"]


def _acknowledge_all(tables: dict[str, list[Row]], part: Row) -> None:
    """Turn every send into an acknowledged one of an idempotent producer with acks=all, with the
    offset of its record."""
    places = {
        row["value_id"]: row["offset"]
        for row in tables["replicas"]
        if row["broker"] == part["final_leader"]
    }
    for row in tables["sends"]:
        row |= {"outcome": "ok", "acks": -1, "idempotent": True, "offset": places[row["value_id"]]}
        row |= {"topic_id": part["topic_id"], "partition": part["partition"]}
        row["complete_ns"] = row["complete_ns"] or row["invoke_ns"]


def _only_state(sends: list[Row], part: Row, brokers: list[int]) -> Row:
    """The partition's only state, from before the excerpt on: the final leader, all in sync."""
    return {
        "zxid": 1,
        "at_ns": min(row["invoke_ns"] for row in sends) - 10 * S,
        "version": 1,
        "path": f"/brokers/topics/{part['topic']}/partitions/{part['partition']}/state",
        "topic_id": part["topic_id"],
        "topic": part["topic"],
        "partition": part["partition"],
        "leader": part["final_leader"],
        "leader_epoch": 5,
        "controller_epoch": 5,
        "isr": json.dumps(brokers),
        "replicas": json.dumps(brokers),
    }


def _victims(copy: Copy, replicas: int) -> list[Row]:
    """Sends whose record each replica and each final pass has at the acknowledged offset, in log
    order."""
    passes = len(copy.final_passes())
    places: dict[str, list[tuple[str, Row]]] = {}
    for table in ("replicas", "reads"):
        for row in copy.rows(table):
            places.setdefault(row["value_id"], []).append((table, row))
    tail = {row["value_id"] for row in copy.rows("reads") if not copy.is_final(row)}
    copy.tail = bool(tail)
    complete = []
    for send in sorted(copy.rows("sends"), key=lambda row: int(row["offset"])):
        copies = places.get(send["value_id"], [])
        on_disk = sum(table == "replicas" for table, _ in copies)
        served = sum(table == "reads" and copy.is_final(row) for table, row in copies)
        is_intact = all(row["offset"] == send["offset"] and row["intact"] for _, row in copies)
        in_tail = not tail or send["value_id"] in tail
        if on_disk == replicas and served == passes and is_intact and passes and in_tail:
            complete.append(send)
    return complete
