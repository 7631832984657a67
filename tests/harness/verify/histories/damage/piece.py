"""The rows about one topic of a run, for damage to be done to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from tests.harness.verify.histories.log import Row

T = TypeVar("T")
Tables = dict[str, list[Row]]


class Unfit(Exception):
    """The history has nothing that could be damaged so: another seed has."""


@dataclass(slots=True)
class Piece:
    """The rows about one topic; rows are changed in place, `drop` and `add` change tables."""

    tables: Tables
    topic: str
    random: Random
    taken: set[str] = field(default_factory=set)

    def rows(self, table: str) -> list[Row]:
        return self.tables.setdefault(table, [])

    def drop(self, table: str, gone: Callable[[Row], bool]) -> None:
        self.tables[table] = [row for row in self.rows(table) if not gone(row)]

    def of(self, table: str, victim: Row) -> list[Row]:
        return [row for row in self.rows(table) if row["value_id"] == victim["value_id"]]

    def lose(self, victim: Row, *tables: str) -> None:
        for table in tables or ("reads", "replicas"):
            self.drop(table, lambda row: row["value_id"] == victim["value_id"])

    def is_final(self, row: Row) -> bool:
        return "-final-" in row["client"]

    def leader(self, partition: int) -> int:
        return int(self.states(partition)[-1]["leader"])

    def states(self, partition: int) -> list[Row]:
        mine = [row for row in self.rows("states") if row["partition"] == partition]
        return sorted(mine, key=lambda row: int(row["version"]))

    def pick(self, rows: Iterable[T]) -> T:
        """One of `rows` by the seed; Unfit without any."""
        candidates = list(rows)
        if not candidates:
            raise Unfit
        return self.random.choice(candidates)

    def committed(self) -> list[Row]:
        """Sound sends of transactions whose commit was acknowledged."""
        is_reported = {
            (row["client"], row["session"], row["txn"])
            for row in self.rows("txns")
            if row["outcome"] == "committed"
        }
        return [
            row
            for row in self.sound()
            if (row["client"], row["session"], row["txn"]) in is_reported
        ]

    def victim(self, fits: Callable[[Row], bool] = lambda row: True) -> Row:
        """A sound send that fits."""
        return self.pick(row for row in self.sound() if fits(row))

    def sound(self) -> list[Row]:
        """Acknowledged sends with acks=all that are on every disk once, at their offsets."""
        places: dict[str, set[int]] = {}
        copies: dict[str, int] = {}
        for row in self.rows("replicas"):
            places.setdefault(row["value_id"], set()).add(row["offset"])
            copies[row["value_id"]] = copies.get(row["value_id"], 0) + 1
        return [
            row
            for row in self.rows("sends")
            if row["outcome"] == "ok" and row["acks"] == -1 and row["offset"] is not None
            if places.get(row["value_id"]) == {row["offset"]} and copies[row["value_id"]] == 3
        ]
