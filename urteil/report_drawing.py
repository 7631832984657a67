"""Reports of a run, with the mutants that each check catches."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

_PAGE = ("page", "cycle_graphs", "record_lives", "timeline_plots", "timeline_tracks", "junit")
DRAWING = (*(f"urteil.reports.{name}" for name in _PAGE), "urteil.suites.mutants")
"""Modules that `draw` imports; the runner imports them during the load."""


def mutants_by_guarantee() -> dict[str, list[str]]:
    """The mutants that each guarantee's check catches."""
    from urteil.suites.mutants import MUTANTS

    names: dict[str, list[str]] = defaultdict(list)
    for mutant in MUTANTS.values():
        names[mutant.guarantee].append(mutant.name)
    return names


def draw(run_dir: Path, *, pictures: bool = True) -> list[Path]:
    """Write the reports of a run; see `urteil.reports.write_reports`.

    Without `pictures` the page names no mutants, since listing them imports a module for each.
    """
    from urteil.reports import write_reports

    return write_reports(run_dir, mutants_by_guarantee() if pictures else {}, pictures=pictures)


def keep_logs(run_dir: Path, keep: str, *, failed: bool) -> None:
    """Remove the processes' logs, unless `keep` is `all`, or `failure` and the run failed."""
    if keep == "none" or (keep == "failure" and not failed):
        for log in run_dir.glob("logs/*.log"):
            log.unlink()
