"""Property files in the form that Java reads."""

from __future__ import annotations

from urteil.harness.targets.target import render


def test_letters_that_are_not_ascii_are_written_as_utf16_units() -> None:
    text = render({"log.dirs": "C:\\größe/日本/😀"})
    assert text == "log.dirs=C:\\\\gr\\u00f6\\u00dfe/\\u65e5\\u672c/\\ud83d\\ude00\n"
