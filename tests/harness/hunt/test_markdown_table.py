"""Markdown tables of nights and matrices."""

from __future__ import annotations

from urteil.harness.hunt.markdown_table import markdown


def test_cell_of_several_lines_stays_in_its_row() -> None:
    table = markdown(["run", "why"], [["1", "mount: busy.\n       dmesg(1) may have more"]])
    assert table.splitlines() == [
        "| run | why                                 |",
        "|-----|-------------------------------------|",
        "| 1   | mount: busy. dmesg(1) may have more |",
    ]
