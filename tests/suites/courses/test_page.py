"""The page of results: rows of the labs in their order, those of earlier runs kept."""

from __future__ import annotations

from datetime import date

from urteil.suites.courses.__main__ import page_with, row_of
from urteil.suites.courses.lab import Tool
from urteil.suites.courses.labs import ALL
from urteil.suites.courses.player import Finding, LabResult

DAY = date(2026, 11, 27)
FIRST, SECOND = ALL[:2]


def test_page_replaces_only_the_rows_of_played_labs() -> None:
    old = row_of(LabResult(FIRST, commands=3, equal=3), DAY)
    text = page_with("", {FIRST.name: old})
    new = row_of(LabResult(FIRST, commands=3, equal=2, reasons=["`a`: random"]), DAY)
    second = row_of(LabResult(SECOND, commands=1, equal=1), DAY)
    assert page_with(text, {SECOND.name: second}).splitlines()[-2:] == [old, second]
    assert page_with(text, {FIRST.name: new}).splitlines()[-1] == new


def test_finding_stands_in_the_row_on_one_line() -> None:
    finding = Finding(Tool(line="kafka-topics --list"), "ours: a|b\nkafka: c")
    row = row_of(LabResult(FIRST, seconds=8.4, commands=1, findings=[finding]), DAY)
    assert row.endswith("| 8 | 1 | 0 | finding: kafka-topics --list     ours: a\\|b kafka: c |")
