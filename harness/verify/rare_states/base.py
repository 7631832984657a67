"""The form in which every rare state is declared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RareState:
    """A rare situation of a cluster or its clients, which the evidence of a run shows.

    It judges nothing: its count says how often a run reached the situation.
    """

    name: str
    about: str
    """The situation in one sentence."""
    reads: tuple[str, ...]
    """Tables of evidence, and of `prepared.PREPARED`, that the query names. In a run where one of
    them has no rows, the state cannot be reached, and is not counted."""
    may_read: tuple[str, ...] = ()
    """Tables of evidence that the query names, too, and that may be without rows."""
    query: str
    """A query in DuckDB's SQL with a row for each time that the state was reached. It may use the
    views and macros of `counting`."""
    plane: str = ""
    """`zookeeper` or `kraft`, if only clusters with that metadata plane can reach it."""
