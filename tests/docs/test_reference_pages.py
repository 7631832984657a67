"""docs/reference is what the declarations generate."""

from __future__ import annotations

import re

import pytest

from docs.reference_pages import COMMAND, FOLDER, render_all
from urteil.harness.verify.shared_tables import STAGES

PAGES = render_all()


@pytest.mark.parametrize("name", PAGES)
def test_reference_page_equals_its_declarations(name: str) -> None:
    path = FOLDER / name
    assert path.exists(), f"run: {COMMAND}"
    assert path.read_text() == PAGES[name], f"{path} differs from its declarations; run: {COMMAND}"


@pytest.mark.parametrize("name", PAGES)
def test_table_cells_of_reference_pages_hold_a_phrase(name: str) -> None:
    rows = [line for line in PAGES[name].splitlines() if line.startswith("| ")]
    cells = [cell.strip() for row in rows for cell in row.split(" | ")]
    long = [cell for cell in cells if len(cell.split()) > 40 and "](" not in cell]
    assert long == []


def test_internals_names_every_shared_table() -> None:
    page = (FOLDER.parent / "guide" / "internals.md").read_text()
    section = page.partition("## The shared SQL tables")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == STAGES.keys()
