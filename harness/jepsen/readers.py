"""What a process polled, in passes: stretches in which its positions only went forward.

A pass goes on over operations, and over an assign that keeps its key. It ends with an assign that
drops the key or seeks, with a crash, a rebalance, and for a subscribed process with each operation:
the group may move the key meanwhile. What an operation polled that failed, or whose end is unknown,
is a pass of its own from the same position: the process goes back there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Polled = tuple[str, int, str]
"""Key, offset, value id."""


@dataclass(slots=True)
class Reader:
    """One process, with the rows of `reads`, `polls` and `passes` that it makes."""

    name: str
    isolation: str
    begin_ns: int
    end_ns: int
    kind: str = "client"
    reads: list[Row] = field(default_factory=list)
    polls: list[Row] = field(default_factory=list)
    passes: list[Row] = field(default_factory=list)
    running: dict[str, Row] = field(default_factory=dict)
    at_beginning: set[str] = field(default_factory=set)
    poll: int = 0

    def assign(self, keys: set[str], *, subscribed: bool, seeks: bool) -> None:
        """From now on `keys` are polled; a key that is kept goes on where it was."""
        self.kind = "group" if subscribed else "consumer"
        kept = set() if subscribed or seeks else keys
        self.running = {key: row for key, row in self.running.items() if key in kept}
        self.at_beginning = set(keys) if seeks else self.at_beginning & kept

    def stop(self, keys: Iterable[str] | None = None) -> None:
        """Nothing is known of the positions in `keys` any more, or in any."""
        for key in list(self.running) if keys is None else keys:
            self.running.pop(key, None)
        self.at_beginning -= self.at_beginning if keys is None else set(keys)

    def take(
        self, polls: Iterable[list[Polled]], times: tuple[int, int], *, ok: bool,
        moved: set[str] | None, txn: int | None,
    ) -> None:  # fmt: skip
        """The polls of one operation; `moved` are the keys of its rebalances, None for all."""
        own: dict[str, Row] = {}
        self.stop(moved)
        for records in polls:
            self.poll += 1
            for position, (key, offset, value_id) in enumerate(records):
                if moved is None or key in moved:
                    row = self._begun(key, offset, times, proves=False)
                else:
                    row = self._pass(key, offset, times, own, ok=ok)
                row["to_offset"] = max(row["to_offset"], offset + 1)
                row["end_ns"] = times[1]
                self._read(row, position, offset, value_id, txn)
            self._polled({key for key, _, _ in records}, times)
        if self.kind == "group":
            self.stop()

    def told_end(self, key: str, end: int, at_ns: int) -> bool:
        """That `key` ends there; whether this process had polled it from its beginning by then."""
        row = self.running.get(key)
        if row is None and key in self.at_beginning:
            row = self.running[key] = self._begun(key, 0, (at_ns, at_ns))
        if row is None or row["from_offset"] > 0:
            return False
        row["to_offset"] = max(row["to_offset"], end)
        return True

    def _pass(
        self, key: str, offset: int, times: tuple[int, int], own: dict[str, Row], *, ok: bool
    ) -> Row:
        running = self.running.get(key)
        if ok:
            if running is None:
                begin = 0 if key in self.at_beginning else offset
                running = self.running[key] = self._begun(key, begin, times)
            return running
        if key not in own:
            begin = offset if running is None else running["to_offset"]
            own[key] = self._begun(key, begin, times, proves=False)
        return own[key]

    def _begun(self, key: str, begin: int, times: tuple[int, int], *, proves: bool = True) -> Row:
        row: Row = {
            "client": self.name, "session": 1, "pass": len(self.passes), "topic_id": key,
            "topic": key, "partition": 0, "from_offset": begin, "to_offset": begin,
            "isolation": self.isolation, "begin_ns": times[0], "end_ns": times[1],
            "final": proves, "complete": proves,
        }  # fmt: skip
        self.passes.append(row)
        return row

    def _read(self, row: Row, position: int, offset: int, value_id: str, txn: int | None) -> None:
        self.reads.append(
            {"client": self.name, "session": 1, "pass": row["pass"], "poll": self.poll,
             "position_in_poll": position, "read_ns": row["end_ns"], "topic_id": row["topic"],
             "topic": row["topic"], "partition": 0, "offset": offset, "value_id": value_id,
             "intact": True, "txn": txn}
        )  # fmt: skip

    def _polled(self, keys: set[str], times: tuple[int, int]) -> None:
        self.polls += [
            {"client": self.name, "session": 1, "poll": self.poll, "invoke_ns": times[0],
             "complete_ns": times[1], "outcome": "ok", "topic_id": key, "topic": key,
             "partition": 0}
            for key in sorted(keys)
        ]  # fmt: skip
