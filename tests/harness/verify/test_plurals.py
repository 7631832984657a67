"""Numbers with their nouns."""

from __future__ import annotations

from urteil.harness.verify.plurals import count_text, times


def test_one_is_singular_and_thousands_are_grouped() -> None:
    values = [count_text(number, "violation") for number in (0, 1, 1355)]
    assert values == ["0 violations", "1 violation", "1,355 violations"]
    assert [times(number) for number in (1, 2, 3, 1200)] == [
        "once",
        "twice",
        "3 times",
        "1,200 times",
    ]
