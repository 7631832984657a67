"""The form in which every rare state is declared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RareState:
    """A rare situation of a cluster or its clients, which the evidence of a run shows.

    Its count is the number of times that a run reached the situation. It is not a judgement.
    """

    name: str
    about: str
    """The situation in one sentence."""
    reads: tuple[str, ...]
    """Tables of evidence, and of `prepared.PREPARED`, that the query reads. If one of them has no
    rows in a run, the state cannot be reached there, and is not counted."""
    may_read: tuple[str, ...] = ()
    """Further tables of evidence that the query reads and that may be without rows."""
    query: str
    """A query in DuckDB's SQL with one row for each time that the state was reached. It may use the
    views and macros of `counting`."""
    plane: str = ""
    """`zookeeper` or `kraft`, if only clusters with that metadata plane can reach it."""
