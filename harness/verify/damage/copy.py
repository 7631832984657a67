"""A copy of evidence that damages change, and the declaration of a damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from urteil.harness.verify.evidence import Row

S = 1_000_000_000
MADE_UP = frozenset({"made-up-compacted", "made-up-retained"})
"""Ids of topics that a damage adds to the copy."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What must be found: a guarantee, how its sub-kind begins, and where, if at one place."""

    guarantee: str
    sub_kind: str
    offset: int | None = None


@dataclass(slots=True)
class Copy:
    """A copy of evidence about one partition, as rows.

    `victims` are rows of `sends` that no damage has used yet, in log order; `tail` says whether a
    consumer read during the load.
    """

    tables: dict[str, list[Row]]
    victims: list[Row] = field(default_factory=list)
    tail: bool = False
    partitions: int = 1
    last_ns: int = 0
    grace_ns: int = 0
    still_ns: int = 0

    def rows(self, table: str) -> list[Row]:
        return self.tables.setdefault(table, [])

    def of(self, table: str, victim: Row) -> list[Row]:
        """The rows of `table` about the victim's value."""
        return [row for row in self.rows(table) if row["value_id"] == victim["value_id"]]

    def drop(self, table: str, gone: Callable[[Row], bool]) -> None:
        self.tables[table] = [row for row in self.rows(table) if not gone(row)]

    def take(self, fits: Callable[[Row], bool] = lambda _: True) -> Row:
        """The first victim that fits; healthy records stay between it and any other one, so that
        damages do not touch. Untried when there is none."""
        for at, victim in enumerate(self.victims[:-5]):
            if fits(victim):
                del self.victims[max(0, at - 2) : at + 3]
                return victim
        raise Untried("too few records")

    def final_passes(self) -> set[tuple[Any, ...]]:
        return {
            (row["client"], row["session"], row["pass"])
            for row in self.rows("passes")
            if row["final"] and row["complete"]
        }

    def is_final(self, read: Row) -> bool:
        return (read["client"], read["session"], read["pass"]) in self.final_passes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One way to damage a copy. `apply` answers what must be found.

    `replicas` is how many it needs, `tail` whether a consumer must have read during the load.
    """

    name: str
    apply: Callable[[Copy], Trace]
    replicas: int = 1
    tail: bool = False


class Untried(Exception):
    """The copy has nothing that this damage could be done to."""


def first(rows: Iterable[Row]) -> Row:
    """The first of `rows`; Untried when there is none."""
    for row in rows:
        return row
    raise Untried("no such record")


def has_value(victim: Row) -> Callable[[Row], bool]:
    """Whether a row is about the victim's value."""
    return lambda row: bool(row["value_id"] == victim["value_id"])


def brokers(copy: Copy) -> list[int]:
    return sorted(row["broker"] for row in copy.rows("logs") if row["topic_id"] not in MADE_UP)


def leader(copy: Copy) -> int:
    """Who led last of those whose logs there are."""
    have = set(brokers(copy))
    led = [row["leader"] for row in states(copy) if row["leader"] in have]
    return int(led[-1]) if led else min(have)


def followers(copy: Copy) -> list[int]:
    """Those who did not lead last, by their ids."""
    return [broker for broker in brokers(copy) if broker != leader(copy)]


def states(copy: Copy) -> list[Row]:
    states = [
        row
        for row in copy.rows("states")
        if row["leader_epoch"] is not None and row["topic_id"] not in MADE_UP
    ]
    return sorted(states, key=lambda row: int(row["zxid"]))
