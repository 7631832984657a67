"""The polls of a process as passes: stretches in which its positions only went forward.

A pass continues over operations, and over an assign that keeps its key. It ends with an assign that
drops the key or seeks, with a crash or a rebalance, and for a subscribed process with each
operation, since the group may move the key meanwhile. Polls of an operation that failed, or has an
unknown end, are a pass of their own from the same position, to which the process returns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from urteil.harness.imports.jepsen.row_groups import SortedTable, Table

Polled = tuple[str, int, str]
"""Key, offset, value id."""


class Polls:
    """The tables of polls. Few passes of a partition suffice to prove a loss, so the widest come
    first."""

    def __init__(self, evidence: Path, run: str, isolation: str) -> None:
        same = {"run": run, "session": 1, "partition": 0}
        self.reads = Table(
            evidence, "reads",
            "client pass poll position_in_poll read_ns topic_id topic offset value_id txn",
            same | {"intact": True},
        )  # fmt: skip
        self.polls = Table(
            evidence, "polls", "client poll invoke_ns complete_ns topic_id topic",
            same | {"outcome": "ok"},
        )  # fmt: skip
        self.passes = SortedTable(
            evidence, "passes",
            "client pass topic_id topic from_offset to_offset begin_ns end_ns final complete "
            "uncovered reader",
            same | {"isolation": isolation}, by="uncovered reader pass",
        )  # fmt: skip

    def close(self) -> None:
        for table in (self.reads, self.polls, self.passes):
            table.close()


@dataclass(slots=True)
class Pass:
    """From one offset up to another one (exclusive).

    `proves`: offsets between that were not polled had no record.
    """

    number: int
    key: str
    from_offset: int
    to_offset: int
    begin_ns: int
    end_ns: int
    proves: bool
    position: int = 0
    """One behind the last polled record."""


@dataclass(slots=True)
class Reader:
    """One process, with the rows of `reads`, `polls` and `passes` that it makes."""

    name: str
    number: int
    tables: Polls
    begin_ns: int
    end_ns: int
    kind: str = "client"
    running: dict[str, Pass] = field(default_factory=dict)
    at_beginning: set[str] = field(default_factory=set)
    poll: int = 0
    passes: int = 0

    def assign(self, keys: set[str], *, subscribed: bool, seeks: bool) -> None:
        """Poll `keys` from now on. A kept key continues at its position."""
        self.kind = "group" if subscribed else "consumer"
        kept = set() if subscribed or seeks else keys
        self._end(key for key in list(self.running) if key not in kept)
        self.at_beginning = set(keys) if seeks else self.at_beginning & kept

    def stop(self, keys: Iterable[str] | None = None) -> None:
        """Forget the positions in `keys`, or all of them."""
        self._end(list(self.running) if keys is None else keys)
        self.at_beginning -= self.at_beginning if keys is None else set(keys)

    def take(
        self, polls: Iterable[list[Polled]], times: tuple[int, int], *, ok: bool,
        moved: set[str] | None, txn: int | None,
    ) -> None:  # fmt: skip
        """The polls of one operation. `moved` are the keys of its rebalances, None for all."""
        own: dict[str, Pass] = {}
        if moved is None or moved:
            self.stop(moved)
        for records in polls:
            self.poll += 1
            keys: set[str] = set()
            for position, (key, offset, value_id) in enumerate(records):
                alone = moved is None or key in moved
                if alone:
                    row = self._begin_pass(key, offset, times, proves=False)
                else:
                    row = self._pass(key, offset, times, own, ok=ok)
                row.to_offset = max(row.to_offset, offset + 1)
                row.position = offset + 1
                row.end_ns = times[1]
                self.tables.reads.add(
                    (self.name, row.number, self.poll, position, times[1], key, key, offset,
                     value_id, txn)
                )  # fmt: skip
                keys.add(key)
                if alone:
                    self._close(row)
            for key in sorted(keys):
                self.tables.polls.add((self.name, self.poll, *times, key, key))
        for row in own.values():
            self._close(row)
        if self.kind == "group":
            self.stop()

    def learn_end(self, key: str, end: int, at_ns: int) -> bool:
        """Record that `key` ends there. Returns whether this process had polled it from its
        beginning by then."""
        row = self.running.get(key)
        if row is None and key in self.at_beginning:
            row = self.running[key] = self._begin_pass(key, 0, (at_ns, at_ns))
        if row is None or row.from_offset > 0:
            return False
        row.to_offset = max(row.to_offset, end)
        return True

    def _pass(
        self, key: str, offset: int, times: tuple[int, int], own: dict[str, Pass], *, ok: bool
    ) -> Pass:
        running = self.running.get(key)
        if ok:
            if running is None:
                begin = 0 if key in self.at_beginning else offset
                running = self.running[key] = self._begin_pass(key, begin, times)
            return running
        if key not in own:
            begin = offset if running is None else running.position
            own[key] = self._begin_pass(key, begin, times, proves=False)
        return own[key]

    def _begin_pass(
        self, key: str, begin: int, times: tuple[int, int], *, proves: bool = True
    ) -> Pass:
        row = Pass(self.passes, key, begin, begin, *times, proves, begin)
        self.passes += 1
        return row

    def _end(self, keys: Iterable[str]) -> None:
        for key in keys:
            if (row := self.running.pop(key, None)) is not None:
                self._close(row)

    def _close(self, row: Pass) -> None:
        self.tables.passes.add(
            (self.name, row.number, row.key, row.key, row.from_offset, row.to_offset, row.begin_ns,
             row.end_ns, row.proves, row.proves, row.from_offset - row.to_offset, self.number)
        )  # fmt: skip
