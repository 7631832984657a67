"""Healthy histories of any size, written directly as Parquet; a seed determines one history.

N acknowledged sends of two idempotent producers and a transactional one, whose transactions are one
send in twenty (a marker each, one transaction in ten is aborted), N reads (a consumer tails the
first half of every partition, final passes under three leaders share the second; one that came late
reads the last LATE records once more), three replicas, one crash. Times, elections and small tables
are those of `urteil.harness.verify.synthetic`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from urteil.harness.verify import synthetic
from urteil.harness.verify.synthetic import BATCH, BROKERS, POLL, RUN, S, Tables, table

TRANSACTIONS = 0.05
ABORTED = 0.1
KEYS = 1_000
TRANSACTIONAL = "t0"
LATE = 1_000


@dataclass(frozen=True)
class History:
    """`sends` records over `partitions`, drawn from `seed`."""

    sends: int
    partitions: int = 10
    seed: int = 1

    @property
    def shape(self) -> synthetic.Shape:
        return synthetic.Shape(records=self.sends // self.partitions, partitions=self.partitions)

    def write(self, run_dir: Path) -> None:
        """Write a run folder, partition by partition, in the memory of one partition."""
        parts = [_Partition(self, number) for number in range(self.partitions)]
        rows = synthetic.small_tables(self.shape)
        for name in ("logs", "passes"):
            rows[name] = [
                row | parts[row["partition"]].marker_columns(name, row) for row in rows[name]
            ]
        for row in rows["offset_answers"]:
            if row["query"] == "latest":
                row["offset"] = parts[row["partition"]].end
        for client, like in ((TRANSACTIONAL, 0), ("c1", 2)):
            rows["clients"].append(rows["clients"][like] | {"client": client})
            rows["manifest"].append(rows["manifest"][like] | {"file": f"journal/{client}.jsonl"})
        tails = [row for row in rows["passes"] if not row["final"]]
        rows["passes"] += [parts[row["partition"]].late_pass(row) for row in tails]
        scenario, facts = synthetic.scenario(self.shape), synthetic.facts(self.shape)
        synthetic.write_run(run_dir, rows, scenario, facts)
        for number in range(self.partitions):
            for name, arrow in _Partition(self, number).tables().items():
                folder = run_dir / "evidence" / name
                folder.mkdir(parents=True, exist_ok=True)
                pq.write_table(arrow, folder / f"part-{number}.parquet", row_group_size=131_072)


def _text(*pieces: Any) -> Any:
    parts = [pa.array(p).cast(pa.string()) if isinstance(p, np.ndarray) else p for p in pieces]
    return pc.binary_join_element_wise(*parts, "")


@dataclass(frozen=True)
class _Partition:
    """One partition: records in blocks of BATCH, each a producer's batch; markers between them."""

    history: History
    number: int

    @property
    def records(self) -> int:
        return self.history.shape.records

    @cached_property
    def blocks(self) -> np.ndarray:
        """For each block 0, 1: an idempotent producer's; 2: committed, 3: aborted."""
        draw = np.random.default_rng([self.history.seed, self.number])
        count = (self.records + BATCH - 1) // BATCH
        chance = draw.random(count)
        kinds = np.arange(count) % 2
        kinds[chance < TRANSACTIONS] = 2
        kinds[chance < TRANSACTIONS * ABORTED] = 3
        return kinds

    @cached_property
    def shift(self) -> np.ndarray:
        """The number of markers before each block, and of all markers as the last entry."""
        return np.concatenate([[0], np.cumsum(self.blocks >= 2)])

    @cached_property
    def offsets(self) -> np.ndarray:
        step = np.arange(self.records, dtype=np.int64)
        return step + self.shift[step // BATCH]

    @property
    def end(self) -> int:
        return self.records + int(self.shift[-1])

    @property
    def half(self) -> int:
        """The first offset of epoch 1, at the start of a block: no batch has two epochs."""
        return int(self.offsets[self.records // 2 // BATCH * BATCH])

    def marker_columns(self, name: str, row: dict[str, Any]) -> dict[str, Any]:
        """Log and pass values that depend on markers."""
        end, half = self.end, self.half
        if name == "logs":
            epochs = json.dumps({"0": 0, "1": half, "2": end, "3": end})
            return {"log_end": end, "high_watermark": end, "recovery_point": end, "epochs": epochs}
        if not row["final"]:
            return {"to_offset": half}
        low, high = self.slice(row["pass"] - 1)
        return {"from_offset": low, "to_offset": high}

    def late_pass(self, row: dict[str, Any]) -> dict[str, Any]:
        """The pass of the late consumer, derived from that of the first one."""
        return row | {"client": "c1", "from_offset": self.end - LATE, "to_offset": self.end}

    def slice(self, number: int) -> tuple[int, int]:
        """The offsets that a final pass covers."""
        cuts = np.linspace(self.half, self.end, self.history.shape.passes + 1).astype(int)
        return int(cuts[number]), int(cuts[number + 1])

    def tables(self) -> Tables:
        columns = self._columns()
        epoch = columns["leader_epoch"]
        led = [synthetic.leader_at(self.number, n) for n in (0, 1)]
        sends = columns | {"node": np.where(epoch == 0, *led).astype(np.int32)}
        sends |= {"producer_id": None, "producer_epoch": None, "sequence": None}
        logs = [
            table("replicas", columns | {"broker": broker}, len(rows))
            for columns, rows in ((columns, self.offsets), self._markers())
            for broker in BROKERS
        ]
        return {
            "sends": table("sends", sends, self.records),
            "reads": self._reads(columns),
            "replicas": pa.concat_tables(logs),
            "polls": self._polls(),
            "txns": self._transactions(columns),
        }

    def _columns(self) -> dict[str, Any]:
        step = np.arange(self.records, dtype=np.int64)
        block = step // BATCH
        kind = self.blocks[block]
        client = pa.array(["p0", "p1", TRANSACTIONAL]).take(pa.array(np.minimum(kind, 2)))
        op = self.number * self.records + step
        invoke = _times(step, self.records)
        first = self.offsets[block * BATCH]
        return {
            "client": client,
            "session": 0,
            "op": op,
            "invoke_ns": invoke,
            "complete_ns": invoke + 5_000_000,
            "outcome": "ok",
            "attempts": 1,
            "ambiguous": False,
            "topic_id": synthetic.TOPIC_ID,
            "topic": synthetic.TOPIC,
            "partition_intended": self.number,
            "partition": self.number,
            "offset": self.offsets,
            "key": _text("k", op * 7919 % KEYS),
            "value_id": _text(f"{RUN}/", client, "/", op),
            "timestamp_ms": invoke // 1_000_000,
            "txn": pa.array(block, mask=kind < 2),
            "acks": -1,
            "idempotent": True,
            "batch_base": first,
            "batch_crc": (first * 2654435761 + self.number) % (1 << 32),
            "batch_bytes": 480,
            "leader_epoch": (self.offsets >= self.half).astype(np.int32),
            "producer_id": 1000 + np.minimum(kind, 2),
            "producer_epoch": 0,
            "sequence": self._sequences(step),
            "intact": True,
            "transactional": kind >= 2,
            "segment_base": 0,
        }

    def _sequences(self, step: np.ndarray) -> np.ndarray:
        """Each producer counts its own blocks."""
        producers = np.minimum(self.blocks, 2)
        nth = np.zeros(len(producers), dtype=np.int64)
        for producer in range(3):
            own_blocks = producers == producer
            nth[own_blocks] = np.arange(int(own_blocks.sum()))
        return nth[step // BATCH] * BATCH + step % BATCH

    def _reads(self, columns: dict[str, Any]) -> pa.Table:
        step = np.arange(self.records, dtype=np.int64)
        read = columns | {"poll": step // POLL, "position_in_poll": (step % POLL).astype(np.int32)}
        tail = read | {"client": "c0", "pass": 0, "read_ns": columns["complete_ns"] + 10_000_000}
        slices = [
            self._slice_of("reads", tail, 0, self.half),
            self._slice_of("reads", tail | {"client": "c1"}, self.end - LATE, self.end),
        ]
        for number in range(self.history.shape.passes):
            at_ns = synthetic.END_NS + (number * 10 + 1) * S
            final = read | {"client": "final", "pass": 1 + number, "read_ns": at_ns + step}
            final["poll"] = 1_000_000 * (1 + number) + read["poll"]
            slices.append(self._slice_of("reads", final, *self.slice(number)))
        return pa.concat_tables(slices)

    def _polls(self) -> pa.Table:
        """The polls of the consumer that tails."""
        polls = np.arange(self.records // 2 // POLL, dtype=np.int64)
        columns = {
            "client": "c0",
            "session": 0,
            "poll": polls,
            "invoke_ns": synthetic.BEGIN_NS + polls,
            "complete_ns": synthetic.BEGIN_NS + polls,
            "outcome": "ok",
            "topic_id": synthetic.TOPIC_ID,
            "topic": synthetic.TOPIC,
            "partition": self.number,
            "position_before": self.offsets[polls * POLL],
            "position_after": self.offsets[(polls + 1) * POLL - 1] + 1,
        }
        return table("polls", columns, len(polls))

    def _slice_of(self, name: str, columns: dict[str, Any], low: int, high: int) -> pa.Table:
        first, last = np.searchsorted(self.offsets, [low, high])
        return table(name, columns, self.records).slice(first, last - first)

    def _markers(self) -> tuple[dict[str, Any], np.ndarray]:
        """The columns of the markers, each the batch after its transaction's block."""
        blocks = np.flatnonzero(self.blocks >= 2)
        last = np.minimum((blocks + 1) * BATCH, self.records) - 1
        offsets = self.offsets[last] + 1
        return {
            "topic_id": synthetic.TOPIC_ID,
            "topic": synthetic.TOPIC,
            "partition": self.number,
            "segment_base": 0,
            "batch_base": offsets,
            "batch_crc": (offsets * 2654435761 + self.number) % (1 << 32),
            "batch_bytes": 78,
            "offset": offsets,
            "leader_epoch": (offsets >= self.half).astype(np.int32),
            "producer_id": 1002,
            "producer_epoch": 0,
            "sequence": -1,
            "intact": True,
            "control": pa.array(["commit", "abort"]).take(pa.array(self.blocks[blocks] - 2)),
            "transactional": True,
            "timestamp_ms": _times(last, self.records) // 1_000_000,
        }, offsets

    def _transactions(self, columns: dict[str, Any]) -> pa.Table:
        blocks = np.flatnonzero(self.blocks >= 2)
        begun = columns["invoke_ns"][blocks * BATCH]
        columns = {
            "client": TRANSACTIONAL,
            "session": 0,
            "txn": blocks,
            "transactional_id": "t0",
            "producer_id": 1002,
            "epoch": 0,
            "begin_ns": begun,
            "commit_invoke_ns": begun + 10_000_000,
            "end_ns": begun + 12_000_000,
            "outcome": pa.array(["committed", "aborted"]).take(pa.array(self.blocks[blocks] - 2)),
        }
        return table("txns", columns, len(blocks))


def _times(step: np.ndarray, records: int) -> np.ndarray:
    """When each record is invoked: evenly before the crash, and from the new leader on."""
    half = max(1, records // 2 // BATCH * BATCH)
    early = synthetic.BEGIN_NS + step * (15 * S // half)
    late = synthetic.LED_NS + (step - half) * (13 * S // max(1, records - half))
    times: np.ndarray = np.where(step >= half, late, early)
    return times
