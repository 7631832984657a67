"""Rows of the evidence tables from the operations of a history.

Operations are transactions if any of them is a `:txn` or has several steps. Rows are written as
they come; memory holds a few bytes a record.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from urteil.harness.imports.jepsen.edn_atoms import as_integer
from urteil.harness.imports.jepsen.operations import (
    LARGEST,
    STEPS,
    HistoryError,
    Row,
    name_part,
    place_of,
    sent_value,
    show_value,
    steps_of,
)
from urteil.harness.imports.jepsen.read_passes import Polled, Polls, Reader
from urteil.harness.imports.jepsen.row_groups import Cells, Table
from urteil.harness.verify.derived.partitions import ENDS, ENDS_NS

BOOT = "jepsen"
Step = list[Any]
_OUTCOMES = {"ok": "committed", "fail": "aborted"}


class IsTransactional(Exception):
    """An operation is a transaction, but earlier ones were imported as none: the import must
    restart."""


class Import:
    """The evidence tables of a history, filled by `take` and completed by `finish`."""

    def __init__(
        self, evidence: Path, run: str, *, acks: int, idempotent: bool, isolation: str,
        transactional: bool = False,
    ) -> None:  # fmt: skip
        self.run, self.acks, self.idempotent, self.isolation = run, acks, idempotent, isolation
        self.transactional = transactional
        self.readers: dict[int, Reader] = {}
        self.keys: dict[str, None] = {}
        self.ends: dict[str, int] = {}
        """When the end of a key was last asked for, by a process that had polled from its
        beginning."""
        same = {"run": run, "session": 1}
        self.sends = Table(
            evidence, "sends", "client op invoke_ns complete_ns outcome error topic_id topic "
            "offset value_id txn",
            same | {"attempts": 1, "ambiguous": False, "partition_intended": 0, "partition": 0}
            | {"acks": acks, "idempotent": idempotent, "tombstone": False},
        )  # fmt: skip
        self.txns = Table(
            evidence, "txns",
            "client txn transactional_id begin_ns end_ns commit_invoke_ns outcome", same,
        )  # fmt: skip
        self.polls = Polls(evidence, run, isolation)
        self._names: dict[Any, str] = {}
        self._sent, self._txns, self._began = 0, 0, False
        self._values = array("q")
        """A hash of each value that was sent."""
        self._polled = array("q")
        """A hash of each value that an operation which completed `:ok` polled, if it matters."""
        self._open: list[tuple[int, Cells, Cells]] = []
        """Sends of transactions of unknown end: as they are if it was not committed, and if so."""
        self._of_open: dict[int, list[int]] = {}
        """The hashes of all values that such a transaction sent."""

    def take(self, invoked: Row | None, done: Row) -> None:
        """One operation with its completion."""
        begin_ns = int((invoked or done)["time"])
        reader = self._reader(done, begin_ns)
        reader.end_ns = max(reader.end_ns, int(done["time"]))
        f = str(done["f"])
        if f in STEPS:
            self._add_steps(reader, f, invoked, done, begin_ns)
        elif f in ("assign", "subscribe"):
            self._add_assignment(reader, f, invoked, done)
        elif f == "crash":
            reader.stop()
        elif f == "debug-topic-partitions" and isinstance(done.get("value"), dict):
            for key, reported in done["value"].items():
                end = as_integer(reported.get("end")) if isinstance(reported, dict) else None
                name = self._key(key)
                if end is None or not 0 <= end < LARGEST:
                    continue
                if reader.learn_end(name, end, begin_ns):
                    self.ends[name] = max(begin_ns, self.ends.get(name, begin_ns))

    def _reader(self, op: Row, at_ns: int) -> Reader:
        process = op["process"]
        if process not in self.readers:
            name = f"j{name_part(process)}"
            self.readers[process] = Reader(name, len(self.readers), self.polls, at_ns, at_ns)
        return self.readers[process]

    def _key(self, key: Any) -> str:
        plain = type(key) is int
        if plain and (known := self._names.get(key)):
            return known
        name = f"k{name_part(key)}"
        self.keys.setdefault(name)
        if plain:
            self._names[key] = name
        return name

    def _value(self, key: str, value: Any) -> str:
        return f"{self.run}/{key}/{value if type(value) is int else name_part(value)}"

    def _add_assignment(self, reader: Reader, f: str, invoked: Row | None, done: Row) -> None:
        assigned = done.get("value") or (invoked or {}).get("value") or ()
        if not isinstance(assigned, (list, tuple, frozenset, dict)):
            raise HistoryError(f"{place_of(done)}: the value of :{f} is {show_value(assigned)}, "
                               "not a vector of keys")  # fmt: skip
        keys = {self._key(key) for key in assigned}
        seeks = done.get("seek-to-beginning?") or (invoked or {}).get("seek-to-beginning?")
        if done["type"] == "ok":
            reader.assign(keys, subscribed=f == "subscribe", seeks=bool(seeks))
        elif done["type"] == "info":
            reader.stop()

    def _add_steps(
        self, reader: Reader, f: str, invoked: Row | None, done: Row, begin_ns: int
    ) -> None:
        """Sends and polls of one operation; those of a transaction belong together."""
        steps, txn = steps_of(invoked, done), None
        if not self.transactional and (f == "txn" or len(steps) > 1):
            if self._began:
                raise IsTransactional
            self.transactional = True
        self._began = True
        polls = [self._records(step) for step in steps if step[0] == "poll" and len(step) > 1]
        sends = [self._send(step) for step in steps if step[0] == "send"]
        ok = done["type"] == "ok"
        if self.transactional and ok and self.isolation == "read_committed":
            self._polled.extend(hash(value) for records in polls for _, _, value in records)
        if self.transactional and sends:
            txn = self._transaction(reader, sends, polls, done, begin_ns)
        for key, offset, value_id in sends:
            self._add(reader, (key, offset, value_id), sends, done, begin_ns, txn)
        moved = self._rebalanced_keys(done)
        if polls or moved is None or moved or reader.kind == "group":
            times = begin_ns, max(begin_ns, int(done["time"]) - (txn is not None))
            reader.take(polls, times, ok=ok, moved=moved, txn=txn)

    def _rebalanced_keys(self, done: Row) -> set[str] | None:
        """The keys of rebalances during an operation. None where one of them does not name its
        keys."""
        log = done.get("rebalance-log")
        if not log:
            return set()
        if not isinstance(log, list):
            return None
        moved: set[str] = set()
        for entry in log:
            keys = entry.get("keys", "") if isinstance(entry, dict) else ""
            if not (keys is None or isinstance(keys, (list, frozenset))):
                return None
            moved.update(map(self._key, keys or ()))
        return moved

    def _records(self, step: Step) -> list[Polled]:
        """The records of one poll."""
        records: list[Polled] = []
        for key, pairs in (step[1] or {}).items():
            name = self._key(key)
            for offset, value in pairs or ():
                if offset is not None and value is not None:
                    records.append((name, offset, self._value(name, value)))
        return records

    def value_of(self, step: Step) -> str:
        """The value id of a send."""
        return self._send(step)[2]

    def _send(self, step: Step) -> tuple[str, int | None, str]:
        """Key, offset where it is known, and value of a send."""
        key, (offset, value) = self._key(step[1]), sent_value(step)
        return key, offset, self._value(key, value)

    def _transaction(
        self, reader: Reader, sends: Iterable[tuple[str, int | None, str]],
        polls: Iterable[list[Polled]], done: Row, begin_ns: int,
    ) -> int:  # fmt: skip
        """Add a transaction and return its number.

        All its polls precede the request of its commit. So that request is as late as possible
        where the transaction polled its own sends.
        """
        self._txns += 1
        own = {value for records in polls for _, _, value in records} & {v for _, _, v in sends}
        asked_ns = None if done["type"] == "fail" else done["time"] if own else begin_ns
        self.txns.add(
            (reader.name, self._txns, reader.name, begin_ns, done["time"], asked_ns,
             _OUTCOMES.get(done["type"], "unknown"))
        )  # fmt: skip
        return self._txns

    def _add(
        self, reader: Reader, send: tuple[str, int | None, str],
        sends: Iterable[tuple[str, int | None, str]], done: Row, begin_ns: int, txn: int | None,
    ) -> None:  # fmt: skip
        """Add a row of `sends`.

        A transaction of unknown end was certainly committed if any of its records was polled, which
        is known at the end of the history. Nothing is certain of an aborted one where uncommitted
        records are polled.
        """
        key, offset, value_id = send
        outcome = str(done["type"])
        committed = self.transactional and self.isolation == "read_committed"
        if outcome == "fail" and self.transactional and not committed:
            outcome = "info"
        row = (reader.name, self._sent, begin_ns, done["time"], outcome,
               None if outcome == "ok" else _reason(done), key, key,
               offset if outcome == "ok" else None, value_id, txn)  # fmt: skip
        self._sent += 1
        self._values.append(hash(value_id))
        if done["type"] == "info" and committed and offset is not None and txn is not None:
            self._open.append((txn, row, (*row[:4], "ok", None, *row[6:8], offset, *row[9:])))
            if txn not in self._of_open:
                self._of_open[txn] = [hash(value) for _, _, value in sends]
        else:
            self.sends.add(row)

    def repeated_hashes(self) -> set[int]:
        """The hashes of values that were sent more than once. Different values may share a hash."""
        values = np.sort(np.frombuffer(self._values, np.int64))
        return {int(value) for value in values[1:][values[1:] == values[:-1]]}

    def finish(self) -> list[Row]:
        """Close all tables. Returns the rows of `clients`."""
        proved = self._proven_commits()
        for txn, unknown, committed in self._open:
            self.sends.add(committed if txn in proved else unknown)
        for reader in self.readers.values():
            reader.stop()
        self.sends.close()
        self.txns.close()
        self.polls.close()
        return [
            {"run": self.run, "client": reader.name, "session": 1, "kind": reader.kind,
             "acks": self.acks, "idempotent": self.idempotent, "isolation": self.isolation,
             "library": "jepsen", "boot_id": BOOT, "begin_ns": reader.begin_ns,
             "end_ns": reader.end_ns}
            for reader in self.readers.values()
        ]  # fmt: skip

    def _proven_commits(self) -> set[int]:
        """Transactions of unknown end with a polled record."""
        if not self._of_open:
            return set()
        polled = np.unique(np.frombuffer(self._polled, np.int64))
        return {txn for txn, values in self._of_open.items() if np.isin(values, polled).any()}

    def end_of(self, key: str) -> dict[str, str]:
        """The known end of a topic: when it was last requested, if ever."""
        if key not in self.ends:
            return {ENDS: "unknown"}
        return {ENDS: "told", ENDS_NS: str(self.ends[key])}

    def counts(self) -> dict[str, int]:
        """The rows of each table."""
        row_lists = {"sends": self.sends.rows, "reads": self.polls.reads.rows}
        row_lists |= {"polls": self.polls.polls.rows, "passes": self.polls.passes.rows}
        return row_lists | ({"txns": self.txns.rows} if self.transactional else {})


def _reason(op: Row) -> str:
    return show_value(op.get("error"))[:200] if op.get("error") is not None else op["type"]
