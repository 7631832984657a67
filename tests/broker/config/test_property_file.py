"""Property files as java.util.Properties reads them, and the errors of malformed ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from urteil.broker.__main__ import main
from urteil.broker.config.property_file import load_properties, parse_properties
from urteil.broker.config.values import ConfigError
from urteil.harness.targets.target import render


def test_keys_separators_and_escapes() -> None:
    text = (
        "# comment\n! another\n\n"
        "a=1\nb = 2\nc: 3\nd 4\n"
        "  long = one,\\\n     two\n"
        "esc\\=aped=x\\ty\\u00e9\n"
        "empty=\nalone\na=last\n"
        "blanks=  x \t\n"
        "pair=\\ud83d\\ude00\n"
    )
    assert parse_properties(text) == {
        "a": "last",
        "b": "2",
        "c": "3",
        "d": "4",
        "long": "one,two",
        "esc=aped": "x\tyé",
        "empty": "",
        "alone": "",
        "blanks": "x \t",
        "pair": "😀",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\x85b\u2028c\x0bd\x1ce=2", {"a": "1\x85b\u2028c\x0bd\x1ce=2"}),
        ("# x\\\na=1", {"a": "1"}),
        ("a=1\\\n# 2", {"a": "1# 2"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a==1\nb:=2\nc = : 3", {"a": "=1", "b": "=2", "c": ": 3"}),
        ("a\\ b=1", {"a b": "1"}),
        ("=1", {"": "1"}),
        ("a=1\\", {"a": "1"}),
        ("\\", {"": ""}),
        ("", {}),
    ],
)
def test_line_ends_and_continuations_equal_java(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("comment", [b"# \xe4\xf6\xfc", b"# \xb0\xa1\xb1\xb3", b"! \xff\xfe\x80"])
def test_bytes_beyond_ascii_in_a_comment_are_ignored(comment: bytes, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(comment + b"\nbroker.id=1\n")
    assert load_properties(file) == {"broker.id": "1"}


def test_values_are_iso_8859_1_and_utf8_causes_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(b"a=\xe4\n# \xc3\xa4\nb=\xc3\xa4\n")
    assert load_properties(file) == {"a": "ä", "b": "Ã¤"}
    assert f"{file}, line 3 is UTF-8" in caplog.text
    assert "line 1" not in caplog.text


def test_byte_order_mark_causes_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(b"\xef\xbb\xbfbroker.id=1\n")
    assert load_properties(file) == {"ï»¿broker.id": "1"}
    assert f"{file} begins with a byte order mark" in caplog.text


@pytest.mark.parametrize("escape", ["\\u12", "\\uzzzz", "\\u 123", "\\u"])
def test_malformed_escape_is_reported_with_file_and_line(
    escape: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"broker.id=1\n\nbroker.rack=\\\n  {escape}\n")
    with pytest.raises(ConfigError, match="malformed"):
        load_properties(file)
    assert main([str(file)]) == 1
    assert f"{file}, line 3: malformed \\uxxxx encoding" in caplog.text


def test_files_of_the_lab_are_read_back() -> None:
    values = {"log.dirs": "/tmp/Prüfung/数据/😀", "a": "back\\slash", "b": "two\nlines"}
    text = render(values)
    assert text.isascii()
    assert parse_properties(text) == values
