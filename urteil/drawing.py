"""A run's reports, drawn with what the suites know: which seeded bugs each check catches."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

DRAWING = (
    *(f"urteil.reports.{name}" for name in ("page", "graphs", "lives", "plots", "tracks", "junit")),
    "urteil.suites.mutants",
)
"""Modules that `draw` imports: worth importing before a report is due."""


def caught() -> dict[str, list[str]]:
    """The seeded bugs that each guarantee's check is known to catch."""
    from urteil.suites.mutants import MUTANTS

    found: dict[str, list[str]] = defaultdict(list)
    for mutant in MUTANTS.values():
        found[mutant.guarantee].append(mutant.name)
    return found


def draw(run_dir: Path, *, pictures: bool = True) -> list[Path]:
    """Write the reports of a run; see `urteil.reports.write_reports`. The page names the seeded
    bugs only if it has pictures: collecting them loads a module for each."""
    from urteil.reports import write_reports

    return write_reports(run_dir, caught() if pictures else {}, pictures=pictures)


def keep_logs(run_dir: Path, keep: str, *, failed: bool) -> None:
    """Remove the processes' logs unless all are to be kept, or those of a failure."""
    if keep == "none" or (keep == "failure" and not failed):
        for log in run_dir.glob("logs/*.log"):
            log.unlink()
