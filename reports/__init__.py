"""Reports: what a person reads (`report.html`) and what a machine reads (`junit.xml`) of one run.

They are drawn from `result.json` and the evidence alone, so they can be drawn again at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def write_reports(
    run_dir: Path, mutants: Mapping[str, Sequence[str]] | None = None, *, pictures: bool = True
) -> list[Path]:
    """Write `junit.xml` and `report.html` into `run_dir` from its `result.json` and evidence.

    A run without a verdict, or one that is damaged, gets the page alone, which says what it lacks.
    `mutants` names, by guarantee, the seeded bugs that its check is known to catch. A page without
    `pictures` does not open the evidence, has no logs either, and says how they are drawn.
    Raises FileNotFoundError when the folder is no run.
    """
    from urteil.reports.junit import write_junit
    from urteil.reports.loaded import load_run
    from urteil.reports.page import write_page

    run = load_run(run_dir)
    junit = [write_junit(run_dir, run.result)] if run.judged else []
    return [*junit, write_page(run_dir, run, mutants or {}, pictures=pictures)]
