"""`matrix.html`: mutants x guarantees on one page that opens from disk without a network."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from urteil.harness.hunt.matrix import Matrix
from urteil.reports.template import environment


def write_matrix(folder: Path, matrix: Matrix) -> Path:
    """Draw the page of a campaign of mutants into `folder`, atomically."""
    path = folder / "matrix.html"
    part = path.with_suffix(".html.part")
    part.write_text(matrix_page(matrix), "utf-8")
    part.replace(path)
    return path


def matrix_page(matrix: Matrix) -> str:
    """The page of a campaign of mutants."""
    templates = environment()
    templates.filters["median"] = median
    return templates.get_template("matrix.html.j2").render(matrix=matrix)
