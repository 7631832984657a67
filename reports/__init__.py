"""Reports: what a person reads (`report.html`) and what a machine reads (`junit.xml`) of one run.

They are drawn from `result.json` and the evidence alone, so they can be drawn again at any time.
"""

from __future__ import annotations

from pathlib import Path


def write_reports(run_dir: Path) -> list[Path]:
    """Write `junit.xml` and `report.html` into `run_dir` from its `result.json` and evidence.

    Raises FileNotFoundError when the run has no verdict yet.
    """
    from urteil.harness.verify.result import load_result
    from urteil.reports.junit import write_junit
    from urteil.reports.page import write_page

    result = load_result(run_dir)
    return [write_junit(run_dir, result), write_page(run_dir, result)]
