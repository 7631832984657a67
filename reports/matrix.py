"""Pages of campaigns, which open from disk without a network: mutants x guarantees
(`matrix.html`), and published bugs by release (`bugs.html`)."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from urteil.harness.hunt.bug_table import BugTable, first_finding
from urteil.harness.hunt.matrix import Matrix
from urteil.reports.template import environment


def write_matrix(folder: Path, matrix: Matrix) -> Path:
    """Draw the page of a campaign of mutants into `folder`, atomically."""
    return _write(folder / "matrix.html", matrix_page(matrix))


def matrix_page(matrix: Matrix) -> str:
    """The page of a campaign of mutants."""
    templates = environment()
    templates.filters["median"] = median
    return templates.get_template("matrix.html.j2").render(matrix=matrix)


def write_bug_table(folder: Path, table: BugTable) -> Path:
    """Draw the page of a campaign of published bugs into `folder`, atomically."""
    templates = environment()
    templates.filters["first_finding"] = first_finding
    text = templates.get_template("bugs.html.j2").render(table=table)
    return _write(folder / "bugs.html", text)


def _write(path: Path, text: str) -> Path:
    part = path.with_suffix(".html.part")
    part.write_text(text, "utf-8")
    part.replace(path)
    return path
