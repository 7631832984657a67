"""What the operations of a history say, as rows of the evidence tables.

Operations are transactions if any of them is a `:txn` or has several steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from urteil.harness.jepsen.history import (
    STEPS,
    HistoryError,
    Row,
    sent_value,
    steps_of,
    where,
    word,
    written_or,
)
from urteil.harness.jepsen.readers import Polled, Reader

BOOT = "jepsen"

Pair = tuple[Row | None, Row]
"""An operation's invocation and completion."""


@dataclass(slots=True)
class Import:
    """The evidence tables of a history, filled by `take_all` and then `finish`."""

    run: str
    acks: int
    idempotent: bool
    isolation: str
    transactional: bool = False
    polled: set[str] = field(default_factory=set)
    """Values that an operation which completed `:ok` polled."""
    tables: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    readers: dict[str, Reader] = field(default_factory=dict)
    keys: dict[str, None] = field(default_factory=dict)
    writers: dict[str, Row] = field(default_factory=dict)
    ends: set[str] = field(default_factory=set)

    def take_all(self, ops: list[Pair]) -> None:
        steps = [(done, steps_of(invoked, done)) for invoked, done in ops if done["f"] in STEPS]
        self.transactional = any(done["f"] == "txn" or len(of) > 1 for done, of in steps)
        for done, of in steps:
            if done["type"] == "ok":
                self.polled |= {value for poll in self._polls(of) for _, _, value in poll}
        for invoked, done in ops:
            self._take(invoked, done)

    def _take(self, invoked: Row | None, done: Row) -> None:
        """One operation with its completion."""
        begin_ns = int((invoked or done)["time"])
        reader = self._reader(done, begin_ns)
        reader.end_ns = max(reader.end_ns, int(done["time"]))
        f = str(done["f"])
        if f in ("assign", "subscribe"):
            self._assigned(reader, f, invoked, done)
        elif f == "crash":
            reader.stop()
        elif f in STEPS:
            self._stepped(reader, invoked, done, begin_ns)
        elif f == "debug-topic-partitions" and isinstance(done.get("value"), dict):
            for key, told in done["value"].items():
                end = told.get("end") if isinstance(told, dict) else None
                name = self._key(key)
                if isinstance(end, int) and reader.told_end(name, end, done["time"]):
                    self.ends.add(name)

    def _reader(self, op: Row, at_ns: int) -> Reader:
        name = f"j{word(op['process'])}"
        return self.readers.setdefault(name, Reader(name, self.isolation, at_ns, at_ns))

    def _key(self, key: Any) -> str:
        name = f"k{word(key)}"
        self.keys.setdefault(name)
        return name

    def _value(self, key: str, value: Any) -> str:
        return f"{self.run}/{key}/{word(value)}"

    def _assigned(self, reader: Reader, f: str, invoked: Row | None, done: Row) -> None:
        told = done.get("value") or (invoked or {}).get("value") or ()
        keys = {self._key(key) for key in told}
        seeks = done.get("seek-to-beginning?") or (invoked or {}).get("seek-to-beginning?")
        if done["type"] == "ok":
            reader.assign(keys, subscribed=f == "subscribe", seeks=bool(seeks))
        elif done["type"] == "info":
            reader.stop()

    def _stepped(self, reader: Reader, invoked: Row | None, done: Row, begin_ns: int) -> None:
        """Sends and polls of one operation; a transaction's belong together."""
        steps, txn = steps_of(invoked, done), None
        if self.transactional and any(step[0] == "send" for step in steps):
            txn = self._transaction(reader, steps, done, begin_ns)
        for step in steps:
            if step[0] == "send":
                self._sent(reader, step, steps, done, begin_ns, txn)
        end_ns = int(done["time"]) - (txn is not None)
        reader.take(
            self._polls(steps),
            (begin_ns, max(begin_ns, end_ns)),
            ok=done["type"] == "ok",
            moved=self._moved(done),
            txn=txn,
        )

    def _moved(self, done: Row) -> set[str] | None:
        """The keys that rebalances during an operation were about; None where one does not say."""
        log = done.get("rebalance-log") or ()
        if any(not isinstance(one, dict) or "keys" not in one for one in log):
            return None
        return {self._key(key) for one in log for key in one["keys"] or ()}

    def _polls(self, steps: Iterable[list[Any]]) -> list[list[Polled]]:
        """The records of each poll: key, offset, value."""
        return [
            [
                (self._key(key), offset, self._value(self._key(key), value))
                for key, found in (step[1] or {}).items()
                for offset, value in found or ()
                if offset is not None and value is not None
            ]
            for step in steps
            if step[0] == "poll" and len(step) > 1
        ]

    def _transaction(self, reader: Reader, steps: list[list[Any]], done: Row, begin_ns: int) -> int:
        """Its number. All its polls came before its commit was asked for, which is therefore as
        late as can be where it polled what it sent itself."""
        txn = len(self.tables["txns"]) + 1
        own = {value for poll in self._polls(steps) for _, _, value in poll} & self._sends(steps)
        outcomes = {"ok": "committed", "fail": "aborted"}
        self.tables["txns"].append(
            {"client": reader.name, "session": 1, "txn": txn, "transactional_id": reader.name,
             "begin_ns": begin_ns, "end_ns": done["time"],
             "commit_invoke_ns": None if done["type"] == "fail" else done["time"] if own
             else begin_ns,
             "outcome": outcomes.get(done["type"], "unknown")}
        )  # fmt: skip
        return txn

    def _sends(self, steps: Iterable[list[Any]]) -> set[str]:
        return {
            self._value(self._key(step[1]), sent_value(step)[1])
            for step in steps
            if step[0] == "send"
        }

    def _outcome(self, steps: list[list[Any]], done: Row, offset: int | None) -> str:
        """What is certain of one send: of a transaction of which anybody polled a record, that it
        was committed; of one that was aborted nothing, where uncommitted records are polled."""
        committed = self.transactional and self.isolation == "read_committed"
        if done["type"] == "info" and committed and offset is not None:
            return "ok" if self._sends(steps) & self.polled else "info"
        if done["type"] == "fail" and self.transactional and not committed:
            return "info"
        return str(done["type"])

    def _sent(
        self, reader: Reader, step: list[Any], steps: list[list[Any]], done: Row, begin_ns: int,
        txn: int | None,
    ) -> None:  # fmt: skip
        key, (offset, value) = self._key(step[1]), sent_value(step)
        outcome, value_id = self._outcome(steps, done, offset), self._value(key, value)
        before = self.writers.setdefault(value_id, done)
        if before is not done:
            raise HistoryError(f"{where(done)} sends {written_or(value)} to key "
                               f"{written_or(step[1])}, as {where(before)} did: values are told "
                               "apart by key and value, and must be unique")  # fmt: skip
        self.tables["sends"].append(
            {"client": reader.name, "session": 1, "op": len(self.tables["sends"]),
             "invoke_ns": begin_ns, "complete_ns": done["time"], "outcome": outcome,
             "attempts": 1, "ambiguous": False,
             "error": None if outcome == "ok" else _reason(done), "topic_id": key, "topic": key,
             "partition_intended": 0, "partition": 0,
             "offset": offset if outcome == "ok" else None, "value_id": value_id,
             "acks": self.acks, "idempotent": self.idempotent, "tombstone": False, "txn": txn}
        )  # fmt: skip

    def finish(self) -> None:
        """Reads, passes, clients and the manifest. Few passes of a partition can prove what is
        lost, so those that cover most come first."""
        tables = self.tables
        for reader in self.readers.values():
            tables["reads"] += reader.reads
            tables["polls"] += reader.polls
            tables["passes"] += reader.passes
            tables["clients"].append(
                {"client": reader.name, "session": 1, "kind": reader.kind, "acks": self.acks,
                 "idempotent": self.idempotent, "isolation": self.isolation, "library": "jepsen",
                 "boot_id": BOOT, "begin_ns": reader.begin_ns, "end_ns": reader.end_ns}
            )  # fmt: skip
        tables["passes"].sort(key=lambda row: int(row["from_offset"] - row["to_offset"]))
        tables["manifest"] = [
            {"file": f"evidence/{name}", "kind": "table", "rows": len(rows), "ended_properly": True}
            for name, rows in tables.items()
        ]

    def unknown(self) -> Iterator[str]:
        """Keys with acknowledged records that nobody polled, where nobody polled."""
        covered: dict[str, list[tuple[int, int]]] = defaultdict(list)
        seen = {row["value_id"] for row in self.tables["reads"]}
        for row in self.tables["passes"]:
            if row["final"]:
                covered[row["topic"]].append((row["from_offset"], row["to_offset"]))
        unasked: dict[str, list[int]] = defaultdict(list)
        for row in self.tables["sends"]:
            key, offset = row["topic"], row["offset"]
            if offset is None or row["value_id"] in seen or key in self.ends:
                continue
            if not any(low <= offset < high for low, high in covered[key]):
                unasked[key].append(offset)
        for key, offsets in unasked.items():
            yield (f"{key}: {len(offsets)} acknowledged records, the first at offset "
                   f"{min(offsets)}, lie where nobody polled: they are unseen, or lost (an assign "
                   "with :seek-to-beginning? and polls to the end would tell)")  # fmt: skip


def _reason(op: Row) -> str:
    return written_or(op.get("error"))[:200] if op.get("error") is not None else op["type"]
