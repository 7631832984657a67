"""Reports of one run: `report.html` for people, `junit.xml` for machines.

Both are made from `result.json` and the evidence only, so they can be made again at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def write_reports(
    run_dir: Path, mutants: Mapping[str, Sequence[str]] | None = None, *, pictures: bool = True
) -> list[Path]:
    """Write `junit.xml` and `report.html` into `run_dir` from its `result.json` and evidence.

    A run that is damaged or has no verdict gets only the page, which lists what is missing.
    `mutants` maps a guarantee to the mutants that its check catches. Without `pictures` the
    evidence is not read, and the page has no plots and no logs.
    Raises FileNotFoundError when the folder is no run.
    """
    from urteil.reports.junit import write_junit
    from urteil.reports.page import write_page
    from urteil.reports.run_loading import load_run

    run = load_run(run_dir)
    junit = [write_junit(run_dir, run.result)] if run.judged else []
    return [*junit, write_page(run_dir, run, mutants or {}, pictures=pictures)]
