"""Healthy evidence made up at any size, for the verifier's own tests and benchmark.

Every partition has three replicas on brokers 1 to 3, two idempotent producers, one consumer that
tails it, a crash of broker 1 in the middle of the load (a new epoch), and three final passes, each
under another leader.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from urteil.chaos.faults.process.crash import Crash
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import (
    ClusterSpec,
    FaultSpec,
    Phase,
    RunFacts,
    Scenario,
    TopicFact,
    TopicSpec,
    WorkloadSpec,
    save,
)
from urteil.harness.verify import evidence

S = 1_000_000_000
BEGIN_NS = 1_000 * S
CRASH_NS = BEGIN_NS + 15 * S
LED_NS = CRASH_NS + 2 * S
HEALED_NS = CRASH_NS + 8 * S
WHOLE_NS = HEALED_NS + 1 * S
END_NS = BEGIN_NS + 30 * S
RUN = "r"
TOPIC_ID = "jyBLnm1AQHafQvz2OHjKhg"
TOPIC = "urteil"
BROKERS = (1, 2, 3)
BATCH = 4
POLL = 50

Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large: records a partition, partitions, final passes (one a leader).

    `sliced` passes share the partition among them, so that together they read it once.
    """

    records: int = 400
    partitions: int = 2
    passes: int = 3
    acks: int = -1
    idempotent: bool = True
    sliced: bool = False

    def slice(self, number: int) -> tuple[int, int]:
        """The offsets that a final pass covers."""
        if not self.sliced:
            return 0, self.records
        cuts = [self.records * n // self.passes for n in range(self.passes + 1)]
        return cuts[number], cuts[number + 1]


def scenario(shape: Shape, **changes: Any) -> Scenario:
    """The scenario that such evidence answers."""
    asked: dict[str, Any] = {
        "name": "synthetic",
        "cluster": ClusterSpec(
            config={
                "min.insync.replicas": "2",
                "zookeeper.session.timeout.ms": "1000",
                "replica.lag.time.max.ms": "1000",
            }
        ),
        "workload": WorkloadSpec(
            topics=(TopicSpec(name=TOPIC, partitions=shape.partitions),),
            acks=shape.acks,
            idempotent=shape.idempotent,
        ),
        "faults": (FaultSpec(fault=Crash.name, target="b1", at_s=15.0, duration_s=8.0),),
        "guarantees": ("lost_write",),
        "survives": True,
    }
    return Scenario(**(asked | changes))


def facts(shape: Shape, **changes: Any) -> RunFacts:
    """What happened in such a run."""
    defaults: dict[str, Any] = {
        "run": RUN,
        "seed": 7,
        "scenario": "synthetic",
        "target": "urteil",
        "runtime": "process",
        "boot_id": "boot",
        "command": "urteil run synthetic --seed 7",
        "phases": [
            Phase(name="before", begin_ns=BEGIN_NS, end_ns=CRASH_NS),
            Phase(name="during", begin_ns=CRASH_NS, end_ns=HEALED_NS),
            Phase(name="after", begin_ns=HEALED_NS, end_ns=END_NS),
            Phase(name="final", begin_ns=END_NS, end_ns=END_NS + 60 * S),
        ],
        "topics": [
            TopicFact(
                name=TOPIC,
                topic_id=TOPIC_ID,
                partitions=shape.partitions,
                replication_factor=len(BROKERS),
                config={"min.insync.replicas": "2"},
            )
        ],
        "brokers": list(BROKERS),
    }
    return RunFacts(**(defaults | changes))


def table(name: str, columns: dict[str, Any], rows: int) -> pa.Table:
    """A table of evidence from columns; a scalar is repeated, an absent column is null."""
    schema = SCHEMAS[name]
    arrays = []
    for field in schema:
        value = RUN if field.name == "run" else columns.get(field.name)
        if isinstance(value, (np.ndarray, pa.Array, pa.ChunkedArray)):
            arrays.append(
                pa.array(value, type=field.type)
                if isinstance(value, np.ndarray)
                else value.cast(field.type)
            )
        else:
            arrays.append(pa.repeat(pa.scalar(value, type=field.type), rows))
    return pa.Table.from_arrays(arrays, schema=schema)


def _text(*pieces: Any) -> Any:
    columns = [
        p.cast(pa.string()) if isinstance(p, (pa.Array, pa.ChunkedArray)) else p for p in pieces
    ]
    return pc.binary_join_element_wise(*columns, "")


@dataclass(slots=True)
class _Records:
    """The records of one partition as columns."""

    shape: Shape
    partition: int

    def columns(self) -> dict[str, Any]:
        n = self.shape.records
        offset = np.arange(n, dtype=np.int64)
        block = offset // BATCH
        producer = block % 2
        op = self.partition * n + offset
        half = offset >= n // 2
        early = BEGIN_NS + offset * (15 * S // max(1, n // 2))
        late = LED_NS + (offset - n // 2) * (13 * S // max(1, n - n // 2))
        invoke = np.where(half, late, early)
        ops = pa.array(op)
        client = _text("p", pa.array(producer))
        return {
            "client": client,
            "session": 0,
            "op": op,
            "invoke_ns": invoke,
            "complete_ns": invoke + 5_000_000,
            "outcome": "ok",
            "attempts": 1,
            "ambiguous": False,
            "topic_id": TOPIC_ID,
            "topic": TOPIC,
            "partition_intended": self.partition,
            "partition": self.partition,
            "offset": offset,
            "key": _text("k", pa.array(op % 50)),
            "value_id": _text(f"{RUN}/", client, "/", ops),
            "timestamp_ms": invoke // 1_000_000,
            "acks": self.shape.acks,
            "idempotent": self.shape.idempotent,
            "batch_base": block * BATCH,
            "batch_crc": (block * 2654435761 + self.partition) % (1 << 32),
            "batch_bytes": 480,
            "leader_epoch": half.astype(np.int32),
            "producer_id": 1000 + producer if self.shape.idempotent else -1,
            "producer_epoch": 0 if self.shape.idempotent else -1,
            "sequence": block // 2 * BATCH + offset % BATCH if self.shape.idempotent else -1,
            "intact": True,
            "transactional": False,
            "segment_base": 0,
        }


def partition_tables(shape: Shape, partition: int) -> Tables:
    """The large tables of one partition: sends, reads, replicas, polls."""
    n = shape.records
    columns = _Records(shape, partition).columns()
    sends = columns | {"node": leader_at(partition, 0)}
    sends["node"] = np.where(
        columns["leader_epoch"] == 0, leader_at(partition, 0), leader_at(partition, 1)
    ).astype(np.int32)
    sends |= {"producer_id": None, "producer_epoch": None, "sequence": None}
    step = np.arange(n, dtype=np.int64)
    read = columns | {"poll": step // POLL, "position_in_poll": (step % POLL).astype(np.int32)}
    tail = read | {"client": "c0", "pass": 0, "read_ns": columns["complete_ns"] + 10_000_000}
    reads = [table("reads", tail, n)]
    for number in range(shape.passes):
        at_ns = END_NS + (number * 10 + 1) * S
        final = read | {"client": "final", "pass": 1 + number, "read_ns": at_ns + step}
        final["poll"] = 1_000_000 * (1 + number) + read["poll"]
        low, high = shape.slice(number)
        reads.append(table("reads", final, n).slice(low, high - low))
    replicas = [table("replicas", columns | {"broker": broker}, n) for broker in BROKERS]
    polls = np.arange((n + POLL - 1) // POLL, dtype=np.int64)
    return {
        "sends": table("sends", sends, n),
        "reads": pa.concat_tables(reads),
        "replicas": pa.concat_tables(replicas),
        "polls": table(
            "polls",
            {
                "client": "c0",
                "session": 0,
                "poll": polls,
                "invoke_ns": BEGIN_NS + polls,
                "complete_ns": BEGIN_NS + polls,
                "outcome": "ok",
                "topic_id": TOPIC_ID,
                "topic": TOPIC,
                "partition": partition,
                "position_before": polls * POLL,
                "position_after": np.minimum((polls + 1) * POLL, n),
            },
            len(polls),
        ),
    }


def leader_at(partition: int, epoch: int) -> int:
    """Who leads in an epoch, once round all for the passes: not broker 1 in the second, where it is
    down."""
    return ((1, 2, 3, 1), (2, 3, 1, 2), (3, 2, 1, 3))[partition % 3][epoch]


def small_tables(shape: Shape) -> dict[str, list[dict[str, Any]]]:
    """The tables that do not grow with the load."""
    tables: dict[str, list[dict[str, Any]]] = {
        "clients": [
            _client("p0", "producer", shape),
            _client("p1", "producer", shape),
            _client("c0", "consumer", shape),
            _client("final", "final", shape),
        ],
        "faults": [
            {
                "fault": Crash.name,
                "targets": '["b1"]',
                "begin_ns": CRASH_NS,
                "end_ns": HEALED_NS,
                "healed_ns": HEALED_NS,
                "proof": "pid 4711 was gone",
                "acted": True,
            }
        ],
        "manifest": [
            {"file": f"journal/{client}.jsonl", "kind": "journal", "ended_properly": True}
            for client in ("p0", "p1", "c0", "final")
        ],
    }
    for partition in range(shape.partitions):
        for name, rows in _partition_rows(shape, partition).items():
            tables.setdefault(name, []).extend(rows)
    return tables


def _client(name: str, kind: str, shape: Shape) -> dict[str, Any]:
    return {
        "client": name,
        "session": 0,
        "kind": kind,
        "acks": shape.acks,
        "idempotent": shape.idempotent,
        "library": "kafka-python",
        "version": "3.0",
        "boot_id": "boot",
        "pid": 4000,
    }


Rows = list[dict[str, Any]]


def _partition_rows(shape: Shape, partition: int) -> dict[str, Rows]:
    place = {"topic_id": TOPIC_ID, "topic": TOPIC, "partition": partition}
    leaders = [leader_at(partition, epoch) for epoch in range(4)]
    rows = {
        "logs": _logs(shape),
        "passes": _passes(shape, leaders),
        "offset_answers": _offset_answers(shape, leaders),
        "indexes": _indexes(shape),
        "states": _states(partition, leaders),
    }
    placed = {name: [place | row for row in content] for name, content in rows.items()}
    return placed | {"samples": _samples(partition, leaders[1])}


def _logs(shape: Shape) -> Rows:
    n = shape.records
    epochs = json.dumps({"0": 0, "1": n // 2, "2": n, "3": n})
    return [
        {"broker": broker, "log_start": 0, "log_end": n, "high_watermark": n}
        | {"recovery_point": n, "epochs": epochs}
        for broker in BROKERS
    ]


def _passes(shape: Shape, leaders: list[int]) -> Rows:
    common = {"session": 0, "isolation": "read_uncommitted", "complete": True}
    final = [
        {"client": "final", "pass": 1 + number, "final": True, "leader": leaders[1 + number % 3]}
        | {"from_offset": shape.slice(number)[0], "to_offset": shape.slice(number)[1]}
        | {"begin_ns": END_NS + (number * 10 + 1) * S, "end_ns": END_NS + (number * 10 + 5) * S}
        for number in range(shape.passes)
    ]
    tail = {"client": "c0", "pass": 0, "final": False, "from_offset": 0, "to_offset": shape.records}
    return [common | row for row in [*final, tail | {"begin_ns": BEGIN_NS, "end_ns": END_NS}]]


def _offset_answers(shape: Shape, leaders: list[int]) -> Rows:
    questions: Rows = [
        {"query": "latest", "offset": shape.records},
        {"query": "time", "timestamp_ms": BEGIN_NS // 1_000_000, "offset": 0},
        {"query": "before:0", "offset": -1, "error": "OFFSET_OUT_OF_RANGE"},
    ]
    return [
        {"node": leaders[epoch], "invoke_ns": at_ns, "complete_ns": at_ns + 1_000_000}
        | {"api_version": 7, "leader_epoch": epoch}
        | asked
        for at_ns, epoch in ((CRASH_NS - 6 * S, 0), (END_NS + 6 * S, 1), (END_NS + 25 * S, 3))
        for asked in questions
    ]


def _indexes(shape: Shape) -> Rows:
    return [
        {"broker": broker, "segment_base": 0, "kind": kind, "entry": entry}
        | {"offset": entry * BATCH + BATCH - 1, "position": entry * 480}
        | {"there": "batch", "there_base": entry * BATCH, "there_last": entry * BATCH + 3}
        | {"timestamp_ms": entry, "there_timestamp_ms": entry, "before_timestamp_ms": entry - 1}
        for broker in BROKERS
        for kind in ("offset", "time")
        for entry in range(min(8, shape.records // BATCH))
    ]


def _samples(partition: int, leader: int) -> Rows:
    return [
        {"at_ns": END_NS + 7 * S, "source": f"b{broker}", "metric": metric, "value": value}
        | {"labels": json.dumps({"topic": TOPIC, "partition": partition})}
        for broker in BROKERS
        for metric, value in (
            ("metadata_leader", float(leader)),
            ("metadata_leader_epoch", 1.0),
            ("metadata_in_sync", 3.0),
        )
    ]


def _states(partition: int, leaders: list[int]) -> Rows:
    versions = [
        (BEGIN_NS - 5 * S, leaders[0], 0, [1, 2, 3]),
        (CRASH_NS + 1 * S, leaders[1], 1, [2, 3]),
        (WHOLE_NS, leaders[1], 1, [2, 3, 1]),
        (END_NS + 8 * S, leaders[2], 2, [2, 3, 1]),
        (END_NS + 18 * S, leaders[3], 3, [2, 3, 1]),
    ]
    return [
        {"zxid": 100 * (partition + 1) + version, "at_ns": at_ns, "version": version}
        | {"path": f"/brokers/topics/{TOPIC}/partitions/{partition}/state"}
        | {"leader": leader, "leader_epoch": epoch, "controller_epoch": 1}
        | {"isr": json.dumps(isr), "replicas": "[1, 2, 3]"}
        for version, (at_ns, leader, epoch, isr) in enumerate(versions)
    ]


def healthy(shape: Shape) -> dict[str, list[dict[str, Any]]]:
    """All tables as rows, for tests that damage them."""
    rows = small_tables(shape)
    for _, tables in _partitions(shape):
        for name, arrow in tables.items():
            rows.setdefault(name, []).extend(arrow.to_pylist())
    return rows


def _partitions(shape: Shape) -> Iterator[tuple[int, Tables]]:
    for partition in range(shape.partitions):
        yield partition, partition_tables(shape, partition)


def write_run(
    run_dir: Path,
    rows: dict[str, list[dict[str, Any]]],
    asked: Scenario,
    facts: RunFacts,
) -> None:
    """Write a run folder from rows."""
    run_dir.mkdir(parents=True, exist_ok=True)
    save(run_dir / "scenario.json", asked)
    save(run_dir / "run.json", facts)
    for name, content in rows.items():
        complete_rows = [row if "run" in row else {"run": RUN} | row for row in content]
        evidence.write_rows(run_dir / "evidence" / name, SCHEMAS[name], complete_rows)


def write_large(run_dir: Path, shape: Shape) -> None:
    """Write a healthy run of any size, partition by partition, in bounded memory."""
    write_run(run_dir, small_tables(shape), scenario(shape), facts(shape))
    for partition, tables in _partitions(shape):
        for name, arrow in tables.items():
            folder = run_dir / "evidence" / name
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(arrow, folder / f"part-{partition}.parquet", row_group_size=131_072)
