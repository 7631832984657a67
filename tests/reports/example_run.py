"""A small synthetic run for the tests of the reports: evidence and a verdict."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import RunFacts, Scenario, save
from urteil.harness.verify.result import (
    FaultResult,
    Finding,
    GuaranteeResult,
    Result,
    Status,
    Verdict,
)

NS = 1_000_000_000
ORIGIN = 500 * NS
WALL_MS = 1_800_000_000_000


def write_table(run_dir: Path, table: str, rows: list[dict[str, Any]]) -> None:
    folder = run_dir / "evidence" / table
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMAS[table]), folder / "part-0.parquet")


def evidence(run_dir: Path, *, sends: int = 2000, topic: str = "urteil") -> None:
    """Thirty seconds of sends with a gap under the fault, and a leader change."""
    rng = random.Random(1)
    rows = []
    for op in range(sends):
        invoke = ORIGIN + op * 30 * NS // sends
        stalled = 10 * NS < invoke - ORIGIN < 13 * NS
        latency = rng.expovariate(1 / 8e6) + (3e9 if stalled else 2e6)
        outcome = rng.choice(["ok", "info"]) if stalled else "ok"
        rows.append(
            {"client": "p1", "op": op, "invoke_ns": invoke, "complete_ns": invoke + int(latency),
             "outcome": outcome, "topic": topic, "partition": op % 3, "topic_id": "x",
             "offset": op // 3, "value_id": f"r/p1/{op}", "session": 1, "acks": -1}
        )  # fmt: skip
    write_table(run_dir, "sends", rows)
    states = []
    for partition in range(3):
        for zxid, at_s, leader, isr in ((1, -5, partition + 1, "[1, 2, 3]"), (2, 11, 2, "[2, 3]"),
                                        (3, 20, 2, "[1, 2, 3]")):  # fmt: skip
            states.append(
                {"zxid": zxid * 10 + partition, "at_ns": ORIGIN + at_s * NS, "topic": topic,
                 "topic_id": "x", "partition": partition, "leader": leader, "leader_epoch": zxid,
                 "isr": isr}
            )  # fmt: skip
    for zxid, at_s, version in ((1, -5, 0), (2, 10, -1), (3, 15, 0)):
        states.append(
            {"zxid": zxid, "at_ns": ORIGIN + at_s * NS, "path": "/brokers/ids/1",
             "version": version, "wall_ms": WALL_MS + at_s * 1000}
        )  # fmt: skip
    write_table(run_dir, "states", states)
    write_table(run_dir, "clients", [
        {"client": "p1", "session": 1, "kind": "producer", "library": topic, "acks": -1,
         "begin_ns": ORIGIN, "end_ns": ORIGIN + 30 * NS},
        {"client": "c1", "session": 1, "kind": "consumer", "group": "g", "begin_ns": ORIGIN},
    ])  # fmt: skip
    write_table(run_dir, "reads", [
        {"client": "c1", "topic": topic, "topic_id": "x", "partition": 0, "offset": offset,
         "read_ns": ORIGIN + offset * 90 * NS // sends + NS, "value_id": f"r/p1/{3 * offset}"}
        for offset in range(sends // 6)
    ])  # fmt: skip
    write_table(run_dir, "logs", [
        {"broker": broker, "topic": topic, "topic_id": "x", "partition": 2, "log_start": 0,
         "log_end": 3} for broker in (1, 2, 3)
    ])  # fmt: skip


def result(verdict: Verdict = Verdict.FAIL, **changes: Any) -> Result:
    """A verdict with one guarantee of every status and a finding whose text is hostile."""
    finding = Finding(
        guarantee="lost_write",
        sub_kind="tail",
        sentence="p1's record 17 was acknowledged and is gone <script>alert(1)</script>\x01",
        topic="urteil",
        partition=0,
        offset=17,
        at_ns=ORIGIN + 10 * NS,
        records=[{"value_id": "r/p1/17", "offset": 17, "key": "<b>&"}, {"broker": 1}],
        faults=["crash b1"],
    )
    guarantees = [
        GuaranteeResult(name=name, status=status, promise="A promise.", source="KIP-101",
                        opportunities=1000, violations=120 if status is Status.VIOLATED else 0,
                        findings=[finding] if status is Status.VIOLATED else [])
        for name, status in (("duplicate", Status.HOLDS), ("lost_write", Status.VIOLATED),
                             ("unseen", Status.UNKNOWN), ("reordered_send", Status.PERMITTED),
                             ("poll_skip", Status.NOT_JUDGED))
    ]  # fmt: skip
    fault = FaultResult(
        fault="crash", targets=["b1"], begin_ns=ORIGIN + 10 * NS, end_ns=ORIGIN + 15 * NS,
        healed_ns=ORIGIN + 16 * NS, proof="pid 7 is gone", acted=True, unavailable_s=3.2,
        recovery_s=1.5,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "verdict": verdict, "reasons": ["lost_write: 120 violations"], "seed": 7,
        "scenario": "demo", "target": "urteil", "runtime": "process", "mutant": None,
        "command": "urteil run demo --seed 7", "run": "made", "engine": "duckdb",
        "versions": {"urteil": "0.1.0"}, "seconds": {"load": 30.0}, "counts": {"sends": 2000},
        "guarantees": guarantees, "faults": [fault], "canary": {"a record dropped": "found"},
        "must_find": {"lost_write": True},
    }  # fmt: skip
    return Result(**{**fields, **changes})


def run(run_dir: Path, *, hostile: str = "", **changes: Any) -> Path:
    """A complete run folder; every name and line that a cluster could choose contains `hostile`."""
    run_dir.mkdir(exist_ok=True)
    evidence(run_dir, topic=f"urteil{hostile}")
    save(run_dir / "result.json", result(**changes))
    scenario = Scenario(name="demo", about=f"a demo{hostile}", guarantees=("lost_write",))
    save(run_dir / "scenario.json", scenario)
    facts = RunFacts(
        run="r", seed=7, scenario="demo", target="urteil", runtime="process", boot_id="b",
        command="urteil run demo --seed 7",
    )  # fmt: skip
    save(run_dir / "run.json", facts)
    (run_dir / "logs").mkdir()
    for second in (2, 10, 11):
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(WALL_MS // 1000 + second))
        with (run_dir / "logs" / "b1.log").open("a") as log:
            log.write(f"{at}.000 INFO second {second}{hostile}\n  and a second line\n")
    return run_dir
