"""A copy of evidence that damages change, and the declaration of a damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from urteil.harness.verify.damage.added_topics import MADE_UP_IDS
from urteil.harness.verify.evidence import Row

S = 1_000_000_000


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
    stall_ns: int = 0

    def rows(self, table: str) -> list[Row]:
        return self.tables.setdefault(table, [])

    def of(self, table: str, victim: Row) -> list[Row]:
        """The rows of `table` about the victim's value."""
        return [row for row in self.rows(table) if row["value_id"] == victim["value_id"]]

    def drop(self, table: str, matches: Callable[[Row], bool]) -> None:
        self.tables[table] = [row for row in self.rows(table) if not matches(row)]

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


Apply = Callable[[Copy], Row | int | None]
"""Damages a copy. Returns the row or the offset at which the finding must be, or None where the
finding has no offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One way to damage a copy, and the finding that must result.

    A damage with `at_the_ends` needs the first or the last victims and is applied before the
    others. `replicas` is the number of replicas that it needs; with `tail` a consumer must have
    read during the load. Calling it raises Untried where the copy does not have what it needs.
    """

    name: str
    guarantee: str
    sub_kind: str
    apply: Apply
    replicas: int = 0
    tail: bool = False
    at_the_ends: bool = False

    def __call__(self, copy: Copy) -> Trace:
        if len(brokers(copy)) < self.replicas:
            raise Untried("too few replicas")
        if self.tail and not copy.tail:
            raise Untried("no consumer read during the run")
        place = self.apply(copy)
        offset = place["offset"] if isinstance(place, dict) else place
        return Trace(self.guarantee, self.sub_kind, offset)


def damage(
    name: str,
    guarantee: str,
    sub_kind: str,
    *,
    replicas: int = 0,
    tail: bool = False,
    at_the_ends: bool = False,
) -> Callable[[Apply], Damage]:
    """Declare the decorated function as the damage `name` (a key of `canary` in result.json), which
    `guarantee` must find with a sub-kind that begins with `sub_kind`."""

    def declare(apply: Apply) -> Damage:
        return Damage(
            name=name, guarantee=guarantee, sub_kind=sub_kind, apply=apply,
            replicas=replicas, tail=tail, at_the_ends=at_the_ends,
        )  # fmt: skip

    return declare


def declared_in(module: ModuleType) -> list[Damage]:
    """The damages of a module, in order of declaration."""
    return [value for value in vars(module).values() if isinstance(value, Damage)]


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
    return sorted(row["broker"] for row in copy.rows("logs") if row["topic_id"] not in MADE_UP_IDS)


def leader(copy: Copy) -> int:
    """The last leader among the brokers with a log."""
    present = set(brokers(copy))
    led = [row["leader"] for row in states(copy) if row["leader"] in present]
    return int(led[-1]) if led else min(present)


def followers(copy: Copy) -> list[int]:
    """The other brokers, by their ids."""
    return [broker for broker in brokers(copy) if broker != leader(copy)]


def states(copy: Copy) -> list[Row]:
    states = [
        row
        for row in copy.rows("states")
        if row["leader_epoch"] is not None and row["topic_id"] not in MADE_UP_IDS
    ]
    return sorted(states, key=lambda row: int(row["zxid"]))
