"""`urteil images` and `urteil engine` on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from urteil.cli.main import exit_code
from urteil.harness.runtimes.containers.engine import Engine


def test_images_are_built_and_listed(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["images", "build", "toxiproxy"]) == 0
    assert re.fullmatch(r"toxiproxy +urteil/toxiproxy:[0-9a-f]{12}\n", capsys.readouterr().out)
    assert exit_code(["images", "list"]) == 0
    listed = capsys.readouterr().out
    assert re.search(r"^toxiproxy +current +\d+ MB  urteil/toxiproxy:", listed, re.MULTILINE)
    assert re.search(r"^kafka +(current|missing|out of date)", listed, re.MULTILINE)


def test_unknown_image_is_rejected_before_an_engine_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert exit_code(["images", "build", "brokr"]) == 254
    assert "no image named 'brokr'; known: broker" in capsys.readouterr().err


def test_missing_engine_is_reported_with_its_mend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    for command in (["images", "build"], ["images", "list"]):
        assert exit_code(command) == 255
        message = capsys.readouterr().err
        assert "no engine at unix:///nowhere/docker.sock" in message
        assert "urteil engine start" in message
    assert exit_code(["engine", "status"]) == 0
    assert "no engine at unix:///nowhere" in capsys.readouterr().out


def test_stopping_a_missing_engine_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert exit_code(["engine", "stop"]) == 254
    assert "urteil engine start" in capsys.readouterr().err
