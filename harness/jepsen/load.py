"""A history of `jepsen.tests.kafka` as the evidence of a run, to be judged without a cluster.

A key becomes a topic `kKEY` of one partition, a process the client `jPROCESS`, a value the record
RUN/kKEY/VALUE. What Jepsen does not record (replicas, elections, settings) is withheld: checks that
need it are not judged. A partition is known as far as polls from its beginning went: an
acknowledged record beyond that is neither lost nor found, and the run is UNKNOWN for it, unless
`:debug-topic-partitions` told the end.
"""

from __future__ import annotations

import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from urteil.harness.history.schema import SCHEMAS
from urteil.harness.jepsen.edn import EdnError, Keyword, read_all, written
from urteil.harness.scenario import (
    ClusterSpec,
    Phase,
    RunFacts,
    Scenario,
    TopicFact,
    WorkloadSpec,
    save,
)
from urteil.harness.verify.evidence import write_rows
from urteil.harness.verify.parts import ENDS, LOG

Row = dict[str, Any]
RUNTIME = "imported"
BOOT = "jepsen"
GUARANTEES = ("lost_write", "inconsistent_offset", "duplicate")
WITHHELD = ("replicas", "logs", "states")
HEALS = re.compile(r"heal|stop|start-all|resume|cont|restart|recover|none")
_OUTCOMES = {"ok": "ok", "fail": "fail", "info": "info"}


class HistoryError(ValueError):
    """The file is no history of this workload; the message says where and what is expected."""


@dataclass(slots=True)
class _Process:
    """One process: its position in the history, what it is assigned, and how far it read."""

    name: str
    kind: str = "client"
    begin_ns: int = 0
    end_ns: int = 0
    turn: int = 0
    poll: int = 0
    from_beginning: bool = False
    keys: set[str] = field(default_factory=set)
    passes: dict[tuple[str, int], Row] = field(default_factory=dict)


@dataclass(slots=True)
class _Import:
    run: str
    acks: int
    idempotent: bool
    isolation: str
    tables: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    processes: dict[str, _Process] = field(default_factory=dict)
    keys: dict[str, None] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    ops: int = 0
    txns: int = 0

    def take(self, invoked: Row | None, done: Row) -> None:
        """One operation with its completion."""
        f = str(done.get("f"))
        begin_ns = int((invoked or done)["time"])
        process = self._process(done, begin_ns)
        process.end_ns = max(process.end_ns, int(done["time"]))
        if f in ("assign", "subscribe"):
            if done["type"] == "ok":
                self._assigned(process, f, done)
        elif f == "crash":
            process.turn += 1
            process.keys = set()
            process.from_beginning = False
        elif f in ("send", "poll", "txn"):
            self._steps(process, f, invoked, done, begin_ns)
        elif f == "debug-topic-partitions" and isinstance(done.get("value"), dict):
            for key, told in done["value"].items():
                if isinstance(told, dict) and isinstance(told.get("end"), int):
                    name = self._key(key)
                    self.ends[name] = max(self.ends.get(name, 0), told["end"])

    def _process(self, op: Row, at_ns: int) -> _Process:
        name = f"j{_word(op.get('process'))}"
        return self.processes.setdefault(name, _Process(name, begin_ns=at_ns, end_ns=at_ns))

    def _key(self, key: Any) -> str:
        name = f"k{_word(key)}"
        self.keys.setdefault(name)
        return name

    def _assigned(self, process: _Process, f: str, op: Row) -> None:
        process.turn += 1
        process.kind = "group" if f == "subscribe" else "consumer"
        process.from_beginning = bool(op.get("seek-to-beginning?"))
        process.keys = {self._key(key) for key in op.get("value") or ()}

    def _steps(
        self, process: _Process, f: str, invoked: Row | None, done: Row, begin_ns: int
    ) -> None:
        """Sends and polls of one operation; a transaction's belong together."""
        steps = done.get("value")
        if steps is None and invoked is not None:
            steps = invoked.get("value")
        if not isinstance(steps, list):
            raise HistoryError(f"{_where(done)}: the value of :{f} is {written_or(steps)}, not a "
                               "vector of [:send k v] and [:poll]")  # fmt: skip
        txn = None
        if f == "txn" and any(step and step[0] == "send" for step in steps):
            self.txns += 1
            txn = self.txns
            self._transaction(process, txn, done, begin_ns)
        if done.get("rebalance-log"):
            process.turn += 1
            process.from_beginning = False
        for step in steps:
            if step and step[0] == "send" and len(step) == 3:
                self._sent(process, step, done, begin_ns, txn)
            elif step and step[0] == "poll":
                if len(step) > 1 and isinstance(step[1], dict):
                    self._polled(process, step[1], done, begin_ns)
            else:
                raise HistoryError(f"{_where(done)}: {written_or(step)} is neither [:send k v] nor "
                                   "[:poll] nor [:poll {k [[offset value] ...]}]")  # fmt: skip

    def _transaction(self, process: _Process, txn: int, done: Row, begin_ns: int) -> None:
        outcomes = {"ok": "committed", "fail": "aborted"}
        self.tables["txns"].append(
            {"client": process.name, "session": 1, "txn": txn, "transactional_id": process.name,
             "begin_ns": begin_ns, "commit_invoke_ns": begin_ns, "end_ns": done["time"],
             "outcome": outcomes.get(done["type"], "unknown")}
        )  # fmt: skip

    def _sent(
        self, process: _Process, step: list[Any], done: Row, begin_ns: int, txn: int | None
    ) -> None:
        key, told = self._key(step[1]), step[2]
        offset, value = told if isinstance(told, list) and len(told) == 2 else (None, told)
        outcome = _OUTCOMES[done["type"]]
        self.tables["sends"].append(
            {"client": process.name, "session": 1, "op": self.ops, "invoke_ns": begin_ns,
             "complete_ns": done["time"], "outcome": outcome, "attempts": 1, "ambiguous": False,
             "error": None if outcome == "ok" else _reason(done), "topic_id": key, "topic": key,
             "partition_intended": 0, "partition": 0,
             "offset": offset if outcome == "ok" else None, "value_id": self._value(key, value),
             "acks": self.acks, "idempotent": self.idempotent, "tombstone": False, "txn": txn}
        )  # fmt: skip
        self.ops += 1

    def _value(self, key: str, value: Any) -> str:
        return f"{self.run}/{key}/{_word(value)}"

    def _polled(self, process: _Process, records: dict[Any, Any], done: Row, begin_ns: int) -> None:
        process.poll += 1
        for key, pairs in records.items():
            name = self._key(key)
            before = process.passes.get((name, process.turn))
            for position, pair in enumerate(pairs):
                offset, value = pair
                if offset is None or value is None:
                    continue
                self.tables["reads"].append(
                    {"client": process.name, "session": 1, "pass": process.turn,
                     "poll": process.poll, "position_in_poll": position, "read_ns": done["time"],
                     "topic_id": name, "topic": name, "partition": 0, "offset": offset,
                     "value_id": self._value(name, value), "intact": True}
                )  # fmt: skip
                before = self._extend(process, name, before, offset, begin_ns, done["time"])
            if pairs:
                self.tables["polls"].append(
                    {"client": process.name, "session": 1, "poll": process.poll,
                     "invoke_ns": begin_ns, "complete_ns": done["time"], "outcome": "ok",
                     "topic_id": name, "topic": name, "partition": 0}
                )  # fmt: skip

    def _extend(
        self, process: _Process, key: str, row: Row | None, offset: int, begin_ns: int, end_ns: int
    ) -> Row:
        if row is None:
            row = process.passes[key, process.turn] = {
                "client": process.name, "session": 1, "pass": process.turn, "topic_id": key,
                "topic": key, "partition": 0, "to_offset": 0, "isolation": self.isolation,
                "from_offset": 0 if process.from_beginning else offset, "begin_ns": begin_ns,
                "final": process.from_beginning, "complete": process.from_beginning,
            }  # fmt: skip
        row["to_offset"] = max(row["to_offset"], offset + 1)
        row["end_ns"] = end_ns
        return row

    def finish(self) -> None:
        """Passes, clients and the manifest; a pass reached its end where that was told."""
        for process in self.processes.values():
            self.tables["passes"] += process.passes.values()
            self.tables["clients"].append(
                {"client": process.name, "session": 1, "kind": process.kind, "acks": self.acks,
                 "idempotent": self.idempotent, "isolation": self.isolation, "library": "jepsen",
                 "boot_id": BOOT, "begin_ns": process.begin_ns, "end_ns": process.end_ns}
            )  # fmt: skip
        tables = self.tables
        tables["manifest"] = [
            {"file": f"evidence/{name}", "kind": "table", "rows": len(rows), "ended_properly": True}
            for name, rows in tables.items()
        ]

    def unknown(self) -> Iterator[str]:
        """Keys of which acknowledged offsets lie beyond all that was polled from the beginning."""
        seen: dict[str, int] = defaultdict(int)
        for row in self.tables["passes"]:
            if row["final"]:
                seen[row["topic"]] = max(seen[row["topic"]], row["to_offset"])
        acked: dict[str, int] = {}
        for row in self.tables["sends"]:
            if row["offset"] is not None:
                acked[row["topic"]] = max(acked.get(row["topic"], -1), row["offset"])
        for key, offset in acked.items():
            if key in seen and offset >= seen[key] and self.ends.get(key, -1) < seen[key]:
                yield (f"{key}: acknowledged up to offset {offset}, but no poll from the beginning "
                       f"went beyond {seen[key] - 1}: what lies there is unseen")  # fmt: skip


def load(
    path: Path,
    run_dir: Path,
    *,
    acks: int = -1,
    idempotent: bool = True,
    isolation: str = "read_uncommitted",
    command: str = "",
) -> int:
    """Make `run_dir` a run of the history at `path`; how many operations it has.

    `acks`, `idempotent` and `isolation` are the clients' settings, which a history does not tell.
    HistoryError names the line or operation that is not as expected.
    """
    found = _Import(secrets.token_hex(4), acks, idempotent, isolation)
    ops = 0
    nemesis: list[Row] = []
    for invoked, done in _pairs(_operations(path)):
        ops += 1
        if isinstance(done.get("process"), int):
            found.take(invoked, done)
        else:
            nemesis.append(done)
    if not found.tables["sends"]:
        raise HistoryError(f"{path}: no operation :send or :txn sends anything; expected is a "
                           "history of jepsen.tests.kafka")  # fmt: skip
    found.finish()
    end_ns = max(process.end_ns for process in found.processes.values())
    begin_ns = min(process.begin_ns for process in found.processes.values())
    found.tables["faults"] = list(_faults(nemesis, end_ns))
    run_dir.mkdir(parents=True, exist_ok=True)
    _describe(found, run_dir, path, command, (begin_ns, end_ns))
    for table in SCHEMAS:
        rows = [{"run": found.run} | row for row in found.tables[table]]
        write_rows(run_dir / "evidence" / table, SCHEMAS[table], rows)
    return ops


def _describe(
    found: _Import, run_dir: Path, path: Path, command: str, span_ns: tuple[int, int]
) -> None:
    """What a run's folder says of itself beside the evidence."""
    topics = [
        TopicFact(
            name=key,
            topic_id=key,
            partitions=1,
            replication_factor=1,
            config={LOG: "reads", ENDS: "told" if key in found.ends else "unknown"},
        )
        for key in found.keys
    ]
    facts = RunFacts(
        run=found.run, seed=0, scenario="jepsen", target="jepsen", runtime=RUNTIME, boot_id=BOOT,
        command=command, versions={"history": path.name}, topics=topics,
        phases=[Phase(name="before", begin_ns=span_ns[0], end_ns=span_ns[1])],
        problems=list(found.unknown()), withheld=list(WITHHELD),
    )  # fmt: skip
    scenario = Scenario(
        name="jepsen", about=f"a history of jepsen.tests.kafka, {path.name}",
        cluster=ClusterSpec(brokers=1), workload=WorkloadSpec(
            kind="jepsen", acks=found.acks, idempotent=found.idempotent, isolation=found.isolation,
            client="jepsen", rate_records_per_s=0, in_flight=5),
        guarantees=GUARANTEES, minimum_acks=1, target="jepsen", runtime=RUNTIME,
    )  # fmt: skip
    save(run_dir / "scenario.json", scenario)
    save(run_dir / "run.json", facts)


def _operations(path: Path) -> Iterator[Row]:
    """The operations of a file: maps one after the other, or one vector of them."""
    try:
        for value in read_all(path.read_text(encoding="utf-8")):
            yield from map(_operation, value if isinstance(value, list) else [value])
    except EdnError as error:
        raise HistoryError(f"{path}: {error}") from None
    except UnicodeDecodeError as error:
        raise HistoryError(f"{path} is no text: {error}") from None


def _operation(value: Any) -> Row:
    if not isinstance(value, dict):
        raise HistoryError(f"{written_or(value)} is no operation, which is a map with :type, :f, "
                           ":process, :time and :value")  # fmt: skip
    for name in ("type", "f", "process", "time"):
        if value.get(name) is None:
            raise HistoryError(f"{_where(value)}: an operation without :{name}")
    if value["type"] not in ("invoke", "ok", "fail", "info"):
        raise HistoryError(f"{_where(value)}: :type {value['type']} is none of :invoke, :ok, :fail "
                           "and :info")  # fmt: skip
    if not isinstance(value["time"], int):
        raise HistoryError(f"{_where(value)}: :time {value['time']} is no number of nanoseconds")
    return value


def _pairs(ops: Iterable[Row]) -> Iterator[tuple[Row | None, Row]]:
    """Each completion with its invocation; what never completed is `:info` at its invocation."""
    open_ops: dict[Any, Row] = {}
    for op in ops:
        if op["type"] == "invoke":
            if op["process"] in open_ops:
                raise HistoryError(f"{_where(op)}: process {op['process']} invokes again before "
                                   "its last operation completed")  # fmt: skip
            open_ops[op["process"]] = op
        else:
            yield open_ops.pop(op["process"], None), op
    for op in open_ops.values():
        yield op, op | {"type": Keyword("info")}


def _faults(nemesis: list[Row], end_ns: int) -> Iterator[Row]:
    """What the nemesis did, from one act until the next that heals, or the history's end."""
    for number, op in enumerate(nemesis):
        name = str(op["f"])
        if HEALS.search(name) or op["type"] == "invoke":
            continue
        healed = (one["time"] for one in nemesis[number + 1 :] if HEALS.search(str(one["f"])))
        until_ns = next(healed, end_ns)
        yield {"fault": name, "targets": '["cluster"]', "begin_ns": op["time"], "end_ns": until_ns,
               "healed_ns": until_ns, "acted": True,
               "proof": f"the history: {written_or(op.get('value'))[:200]}"}  # fmt: skip


def _word(value: Any) -> str:
    """A key, value or process as part of a name."""
    text = value if isinstance(value, str) else written_or(value)
    return re.sub(r"[^\w.-]", "_", text)


def _reason(op: Row) -> str:
    return written_or(op.get("error"))[:200] if op.get("error") is not None else op["type"]


def _where(op: Row) -> str:
    return f"operation {op.get('index', '?')}"


def written_or(value: Any) -> str:
    """A value as EDN, or as Python shows what has none."""
    try:
        return written(value)
    except TypeError:
        return repr(value)
