"""`matrix.html`: mutants x guarantees on one page that opens from disk without a network."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import jinja2

from urteil.harness.campaign.matrix import Matrix


def write_matrix(folder: Path, matrix: Matrix) -> Path:
    """Draw the page of a campaign of mutants into `folder`, whole or not at all."""
    path = folder / "matrix.html"
    part = path.with_suffix(".html.part")
    part.write_text(matrix_page(matrix), "utf-8")
    part.replace(path)
    return path


def matrix_page(matrix: Matrix) -> str:
    """The page of a campaign of mutants."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("urteil.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["median"] = median
    return environment.get_template("matrix.html.j2").render(matrix=matrix)
