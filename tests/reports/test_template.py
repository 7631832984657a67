"""Compiled templates are cached, and no page depends on the cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from urteil.reports import template


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.pycache_prefix", str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    return tmp_path


def _compiled(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.pyc"))


def test_compiled_template_is_kept_once(folder: Path) -> None:
    template.environment().get_template("matrix.html.j2")
    (kept,) = _compiled(folder)
    before = kept.stat().st_mtime_ns
    template.environment().get_template("matrix.html.j2")
    assert [path.stat().st_mtime_ns for path in _compiled(folder)] == [before]
    assert os.listdir(kept.parent) == [kept.name]


def test_damaged_compiled_template_is_compiled_again(folder: Path) -> None:
    template.environment().get_template("matrix.html.j2")
    (kept,) = _compiled(folder)
    content = kept.read_bytes()
    kept.write_bytes(content[: len(content) // 2])
    assert template.environment().get_template("matrix.html.j2").name == "matrix.html.j2"


def test_unwritable_cache_folder_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("sys.pycache_prefix", str(tmp_path / "file"))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    assert template.environment().get_template("matrix.html.j2").name == "matrix.html.j2"
