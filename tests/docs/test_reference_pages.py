"""docs/reference is what the declarations generate."""

from __future__ import annotations

import functools
import re

import pytest

from docs.reference_pages import COMMAND, FOLDER, render_all
from urteil.harness.verify.shared_tables import STAGES

NAMES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.md"))
"""Of the files; to render the pages takes half a second in each process that collects tests."""

pages = functools.cache(render_all)


def test_files_of_the_reference_are_the_generated_pages() -> None:
    assert sorted(pages()) == NAMES, f"run: {COMMAND}, and remove the files that it does not write"


@pytest.mark.parametrize("name", NAMES)
def test_reference_page_equals_its_declarations(name: str) -> None:
    path = FOLDER / name
    assert path.read_text() == pages()[name], (
        f"{path} differs from its declarations; run: {COMMAND}"
    )


@pytest.mark.parametrize("name", NAMES)
def test_table_cells_of_reference_pages_hold_a_phrase(name: str) -> None:
    rows = [line for line in pages()[name].splitlines() if line.startswith("| ")]
    cells = [cell.strip() for row in rows for cell in row.split(" | ")]
    long = [cell for cell in cells if len(cell.split()) > 40 and "](" not in cell]
    assert long == []


def test_internals_names_every_shared_table() -> None:
    page = (FOLDER.parent / "guide" / "internals.md").read_text()
    section = page.partition("## The shared SQL tables")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == STAGES.keys()
