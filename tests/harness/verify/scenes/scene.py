"""A scene: rows that one guarantee is judged by, drawn at random from a seed.

Many scenes make one run. Each has partitions and names of its own, and numbers from a small range,
so that rows meet. It holds rows of evidence and of derived tables, as far as the guarantee reads
them; both the query and the reference check see the same ones.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from urteil.harness.verify.derived.coverage import cover_rows
from urteil.harness.verify.limits import FOREVER_NS, NO_OFFSET

Row = dict[str, Any]
Tables = dict[str, list[Row]]
S = 1_000_000_000
END_NS = 10_000 * S
MOST_PARTS = 4
"""The partitions of one scene."""

_PART = {
    **dict.fromkeys(("in_run", "workload_topic", "has_log", "checksums_known", "ends_known"), 1),
    **dict.fromkeys(("copies", "compacted", "deletes", "gone", "trimmed", "clock_moved"), 0),
    **dict.fromkeys(("unclean_on", "unclean_requested", "foreign_permitted", "reads_are_log"), 0),
    **dict.fromkeys(("append_time", "sent_times", "retention_configured", "log_start"), 0),
    **{"final_leader": 1, "log_end": 100, "max_start": 0, "replication": 3, "min_isr": 2},
    **{"unclean_floor": NO_OFFSET, "agreed_end": NO_OFFSET, "ends_ns": END_NS, "calm_ns": 0},
    **{"dirty_ratio": None, "min_lag_ns": 0},
}


@dataclass
class Scene:
    """The rows of the scene with this number."""

    number: int
    random: Random
    run: Random
    """Draws the same values in all scenes of a run: its settings."""
    tables: Tables = field(default_factory=lambda: defaultdict(list))

    def add(self, table: str, **columns: Any) -> Row:
        self.tables[table].append(columns)
        return columns

    def place(self, n: int = 0) -> Row:
        """The columns that name its partition `n`."""
        topic = f"t{self.number:04}"
        return {"topic_id": f"id-of-{topic}", "topic": topic, "partition": n}

    def p(self, n: int = 0) -> int:
        return self.number * MOST_PARTS + n

    def name(self, kind: str) -> str:
        """A name of its own, of a client or the like."""
        return f"{kind}{self.number}"

    def part(self, n: int = 0, *, led: bool = True, **columns: Any) -> Row:
        """A partition; with `led`, broker 1 leads it all the time."""
        row = self.add("partitions", p=self.p(n), **(self.place(n) | _PART | columns))
        if led:
            self.reign(n, zxid=self.p(n), at_ns=0)
        return row

    def log(self, broker: int, log_end: int, n: int = 0) -> None:
        """A broker's log of it, from offset 0 on."""
        self.add("logs", broker=broker, log_start=0, log_end=log_end, **self.place(n))
        self.add("logs_p", p=self.p(n), broker=broker, log_start=0, log_end=log_end)

    def reign(self, n: int, **columns: Any) -> Row:
        """A version of its state."""
        state = {"leader": 1, "leader_epoch": 0, "controller_epoch": 1, "version": 0,
                 "isr": json.dumps([1, 2, 3])}  # fmt: skip
        path = f"/brokers/topics/{self.place(n)['topic']}/partitions/{n}/state"
        return self.add("states", path=path, **(self.place(n) | state | columns))

    def spans(self, n: int = 0) -> None:
        """The derived rows of its states so far."""
        states = [row for row in self.tables["states"] if row.get("partition") == n]
        ends_ns = [*(row["at_ns"] for row in states[1:]), FOREVER_NS]
        for row, end_ns in zip(states, ends_ns, strict=True):
            names = ("leader", "leader_epoch", "controller_epoch", "version", "isr", "path")
            same = {name: row[name] for name in names} | {"isr_size": len(json.loads(row["isr"]))}
            self.add("state_spans", p=self.p(n), begin_ns=row["at_ns"], end_ns=end_ns, **same)

    def send(self, n: int, offset: int, value: str, at_ns: int, **columns: Any) -> None:
        """A send to it that was acknowledged at an offset, or had another outcome."""
        default = {"session": 0, "op": offset, "client": self.name("a"), "acks": -1}
        row = default | {"outcome": "ok", "complete_ns": at_ns + S, "offset": offset} | columns
        row["offset"] = offset if row["outcome"] == "ok" else None
        row |= {"value_id": value, "invoke_ns": at_ns, "partition_intended": n}
        self.add("sends", **(self.place(n) | row))

    def lie(self, n: int, value: str | None, offset: int, *, share: float = 0.9,
            **columns: Any) -> None:  # fmt: skip
        """A record is on the disk of broker 1, mostly, and on that of broker 2, mostly."""
        default = {"leader_epoch": 0, "batch_base": offset, "batch_crc": offset, "segment_base": 0}
        for broker in (1, 2):
            if self.chance(share):
                row = {"broker": broker, "offset": offset, "value_id": value}
                self.add("replicas", **(self.place(n) | row | default | columns))

    def final_passes(self, n: int, isolations: tuple[str, ...], to_offset: int) -> None:
        """A final pass for each isolation level, over a part of broker 1's log; most records are
        delivered."""
        passes = []
        for number, isolation in enumerate(isolations):
            session = {"client": self.name(isolation), "session": 0, "pass": 10 * n + number}
            end = to_offset if number else 30
            self.add("clients", client=session["client"], session=0, isolation=isolation)
            row = self.add("passes", **self.place(n), **session, from_offset=0, to_offset=end,
                           isolation=isolation, final=True, complete=True)  # fmt: skip
            passes.append((1 << number, row))
            for record in list(self.tables["replicas"]):
                is_its = record["broker"] == 1 and record["partition"] == n
                if is_its and record["offset"] < end and self.chance(0.9):
                    names = ("offset", "value_id")
                    self.add("reads", **self.place(n), **session, poll=0, read_ns=30 * S,
                             position_in_poll=record["offset"],
                             **{name: record[name] for name in names})  # fmt: skip
        self.cover(n, passes)

    def cover(self, n: int, passes: list[tuple[int, Row]]) -> None:
        """The ranges that its logs and these passes, each with its bit, cover."""
        logs = [row for row in self.tables["logs"] if row["partition"] == n]
        self.tables["cover"] += cover_rows(self.p(n), logs, passes)
        for bit, row in passes:
            session = {name: row[name] for name in ("client", "session", "pass")}
            self.add("pass_bits", **session, p=self.p(n), bit=bit)

    def times(self, count: int, least_s: int, most_s: int) -> list[int]:
        """Different times in order, multiples of 0.1 s."""
        tenths = self.random.sample(range(least_s * 10, most_s * 10), count)
        return [tenth * (S // 10) for tenth in sorted(tenths)]

    def chance(self, share: float) -> bool:
        return self.random.random() < share


Draw = Callable[[Scene], None]


def drawn(draw: Draw, seeds: list[int]) -> Tables:
    """The rows of all scenes as one run."""
    tables: Tables = defaultdict(list)
    for number, seed in enumerate(seeds):
        scene = Scene(number, Random(seed), Random(seeds[0]))
        draw(scene)
        for name, rows in scene.tables.items():
            tables[name] += rows
    return tables
