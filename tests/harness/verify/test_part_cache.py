"""Results of functions of a part file are cached for each version of the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from urteil.harness.verify import part_cache
from urteil.harness.verify.part_cache import once_a_version, once_a_version_of_any_size


def test_result_is_computed_once_for_each_version_and_argument(tmp_path: Path) -> None:
    calls: list[tuple[str, int]] = []

    @once_a_version
    def text(part: Path, times: int) -> str:
        calls.append((part.read_text(), times))
        return part.read_text() * times

    part = tmp_path / "part"
    part.write_text("a")
    assert [text(part, 1), text(part, 2), text(part, 1)] == ["a", "aa", "a"]
    part.write_text("bc")
    assert [text(part, 1), text(part, 1)] == ["bc", "bc"]
    assert calls == [("a", 1), ("a", 2), ("bc", 1)]


def test_file_written_anew_with_the_same_size_has_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    part = tmp_path / "part"
    part.write_text("a")
    before = part_cache.version(part)
    os.utime(part, ns=(1, 1))
    assert part_cache.version(part) != before


def test_answer_about_a_large_part_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_cache, "SMALL_BYTES", 4)
    calls = {"small": 0, "any": 0}

    @once_a_version
    def small(part: Path) -> None:
        calls["small"] += 1

    @once_a_version_of_any_size
    def any_size(part: Path) -> None:
        calls["any"] += 1

    part = tmp_path / "part"
    part.write_text("12345")
    for compute in (small, small, any_size, any_size):
        compute(part)
    assert calls == {"small": 2, "any": 1}


def test_exception_is_not_stored(tmp_path: Path) -> None:
    fails = [True, False]

    @once_a_version
    def answer(part: Path) -> str:
        if fails.pop(0):
            raise ValueError("not yet")
        return "fine"

    part = tmp_path / "part"
    part.write_text("a")
    with pytest.raises(ValueError, match="not yet"):
        answer(part)
    assert answer(part) == "fine"


def test_missing_part_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        once_a_version(lambda part: part)(tmp_path / "part")


def test_least_recently_used_result_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_cache, "MOST_RESULTS", 2)
    calls: list[int] = []
    number = once_a_version(lambda part, n: calls.append(n))
    part = tmp_path / "part"
    part.write_text("a")
    for n in (1, 2, 1, 3, 1, 2):
        number(part, n)
    assert calls == [1, 2, 3, 2]
