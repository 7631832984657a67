"""What validation reports: reasons against `PASS`, damaged tables, and clocks that disagree."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class ValidationReport:
    """What is wrong with the evidence of a run.

    Every reason keeps the verdict from `PASS`. A violation that rests on a damaged table is
    unknown, as is one that compares times if clocks disagree.
    """

    reasons: list[str] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)
    """Tables that may lack rows or have wrong ones, each with the first reason."""
    clocks: list[str] = field(default_factory=list)
    """Reasons why times cannot be compared."""

    def add(self, reasons: Iterable[str]) -> None:
        self.reasons += reasons

    def add_damage(self, table: str, reason: str) -> None:
        self.reasons.append(reason)
        self.damaged.setdefault(table, reason)

    def add_clocks(self, reasons: Iterable[str]) -> None:
        for reason in reasons:
            self.reasons.append(reason)
            self.clocks.append(reason)

    def damage_of(self, tables: Collection[str]) -> str | None:
        """Why one of these tables is damaged; None if all are intact."""
        return next((reason for table, reason in self.damaged.items() if table in tables), None)
