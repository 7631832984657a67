"""Tiny evidence, made row by row. Every method returns the evidence, so that calls chain."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import Phase, RunFacts
from urteil.harness.verify import evidence
from urteil.harness.verify.rare_states import STATES
from urteil.harness.verify.rare_states.counting import StateCounts, count_states

S = 1_000_000_000
GROUP = "group"
ID = "id"
DEFAULTS: dict[str, dict[str, Any]] = {
    "sends": {"client": "p1", "session": 1, "outcome": "ok", "acks": -1, "attempts": 1,
              "idempotent": True, "producer_id": 7, "producer_epoch": 0},
    "reads": {"client": "c1", "session": 1, "poll": 1, "leader_epoch": 0},
    "polls": {"client": "c1", "session": 1, "outcome": "ok"},
    "txns": {"client": "t1", "session": 1, "txn": 1, "transactional_id": ID,
             "outcome": "committed"},
    "commits": {"client": "g1", "session": 1, "group": GROUP, "generation": 1, "outcome": "ok",
                "offset": 5},
    "commit_reads": {"client": "g1", "session": 1, "group": GROUP, "outcome": "ok", "offset": 5},
    "assignments": {"client": "g1", "session": 1, "group": GROUP, "generation": 1,
                    "event": "assigned"},
    "clients": {"client": "c1", "session": 1},
    "admin_ops": {"outcome": "ok", "subject": "t", "before": "{}", "after": "{}"},
    "replicas": {"broker": 1, "leader_epoch": 0, "segment_base": 0, "producer_id": 7,
                 "producer_epoch": 0, "transactional": False},
    "logs": {"broker": 1, "log_start": 0, "log_end": 10, "epochs": "{}"},
    "link_events": {"api": "Produce", "direction": "request", "act": "drop", "correlation_id": 1},
    "accesses": {"client": "user1", "session": 1, "node": 1, "subject": "user1 reads t"},
}  # fmt: skip
"""Columns of rows that do not name them."""


class Made:
    """The rows so far, of the topic `t` unless a call names another. Times are in seconds."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.phases: list[Phase] = []

    def add(self, table: str, **columns: Any) -> Self:
        """A row. A column `x_s` is the column `x_ns` in seconds."""
        topic = columns.get("topic", "t")
        row = {"topic": topic, "topic_id": f"id of {topic}", "partition": 0}
        row |= DEFAULTS.get(table, {})
        row |= {f"{name[:-2]}_ns": _ns(columns.pop(name)) for name in [*columns] if _is_s(name)}
        names = SCHEMAS[table].names
        self.tables[table].append({name: row.get(name) for name in names} | columns)
        return self

    def led(self, at_s: float, leader: int, isr: Iterable[int], *, n: int = 0, topic: str = "t",
            office: int = 1, **columns: Any) -> Self:  # fmt: skip
        """A version of a partition's state; another leader begins another epoch."""
        path = f"/brokers/topics/{topic}/partitions/{n}/state"
        versions = [row for row in self.tables["states"] if row["path"] == path]
        last = versions[-1] if versions else {"leader": leader, "leader_epoch": 0}
        epoch = last["leader_epoch"] + (leader != last["leader"])
        row = {"leader": leader, "leader_epoch": epoch, "version": len(versions)}
        row |= {"isr": json.dumps([*isr]), "replicas": "[1, 2, 3]"}
        row |= {"controller_epoch": office, "partition": n, "topic": topic}
        return self.znode(at_s, path, **(row | columns))

    def znode(self, at_s: float, path: str, **columns: Any) -> Self:
        """A version of a znode."""
        place = {"partition": None, "topic": None, "topic_id": None}
        place |= {"topic_id": f"id of {columns['topic']}"} if "topic" in columns else {}
        row = place | {"version": 0, "zxid": len(self.tables["states"])} | columns
        return self.add("states", at_s=at_s, path=path, **row)

    def assigned_replicas(self, at_s: float, *replicas: int) -> Self:
        """The replicas of partition 0."""
        text = json.dumps({"0": replicas})
        return self.znode(at_s, "/brokers/topics/t", topic="t", replicas=text)

    def broker(self, broker: int, *times_s: float) -> Self:
        """A broker's registration: its begin, its end, its next begin ..."""
        for number, at_s in enumerate(times_s):
            self.znode(at_s, f"/brokers/ids/{broker}", version=-(number % 2))
        return self

    def controllers(self, *terms: tuple[float, int | None]) -> Self:
        """The controller from each time on; None for none."""
        for at_s, controller in terms:
            version = -1 if controller is None else 0
            self.znode(at_s, "/controller", controller=controller, version=version)
        return self

    def fault(self, effect: str, begin_s: float, end_s: float, *nodes: str,
              healing_s: float | None = None) -> Self:  # fmt: skip
        """A fault that acted, with one effect; it was healed at `end_s`."""
        return self.add(
            "faults", fault=effect, targets=json.dumps(nodes), effects=json.dumps([effect]),
            acted=True, begin_s=begin_s, end_s=healing_s or end_s, healed_s=end_s,
        )  # fmt: skip

    def send(self, at_s: float, done_s: float | None = None, **columns: Any) -> Self:
        """A send to partition 0, acknowledged after a tenth of a second unless columns differ."""
        op = len(self.tables["sends"])
        done_s = at_s + 0.1 if done_s is None else done_s
        row = {"op": op, "value_id": f"v{op}", "offset": op, "partition_intended": 0,
               "sequence": op} | columns  # fmt: skip
        done = {} if row.get("outcome") == "info" else {"complete_s": done_s}
        return self.add("sends", invoke_s=at_s, **done, **row)

    def stored(self, offset: int, **columns: Any) -> Self:
        """A record on broker 1."""
        row = {"offset": offset, "batch_base": offset, "value_id": f"v{offset}"}
        return self.add("replicas", **(row | columns))

    def marker(self, offset: int, control: str, **columns: Any) -> Self:
        """A transaction's marker on broker 1."""
        return self.stored(offset, control=control, value_id=None, transactional=True, **columns)

    def log(self, broker: int, epochs: Mapping[int, int], **columns: Any) -> Self:
        """A log with its epochs and their begins."""
        return self.add("logs", broker=broker, epochs=json.dumps(epochs), **columns)

    def named(self, at_s: float, broker: int, leader: int, epoch: int) -> Self:
        """A broker's Metadata response about partition 0."""
        labels = json.dumps({"topic": "t", "topic_id": "id of t", "partition": 0})
        for metric, value in (("metadata_leader", leader), ("metadata_leader_epoch", epoch)):
            self.add("samples", at_s=at_s, source=f"b{broker}", metric=metric, labels=labels,
                     value=float(value))  # fmt: skip
        return self

    def coordinated(self, topic: str, *terms: tuple[float, int]) -> Self:
        """The leader of the only partition of a coordinators' topic from each time on."""
        for at_s, leader in terms:
            self.led(at_s, leader, [1, 2, 3], topic=topic)
        return self

    def phase(self, name: str, begin_s: float, end_s: float) -> Self:
        self.phases.append(Phase(name=name, begin_ns=_ns(begin_s), end_ns=_ns(end_s)))
        return self

    def write(self, run_dir: Path) -> RunFacts:
        """Write the rows; returns the facts of the run."""
        for table, rows in self.tables.items():
            evidence.write_rows(run_dir / "evidence" / table, SCHEMAS[table], rows)
        return RunFacts(run="r", seed=1, scenario="made", target="urteil", runtime="process",
                        boot_id="boot", command="urteil run made", phases=self.phases)  # fmt: skip

    def count(self, run_dir: Path, *names: str) -> StateCounts:
        """The counts of the named states over these rows."""
        facts = self.write(run_dir)
        return count_states(run_dir, facts, [STATES[name] for name in names])


def _is_s(name: str) -> bool:
    return name.endswith("_s")


def _ns(at_s: float | None) -> int | None:
    return None if at_s is None else int(at_s * S)


Case = tuple[Made, Made]
"""Evidence that reaches a state once, and evidence that just misses it."""
