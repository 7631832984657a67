"""Installation of a dependency: complete or absent, once for concurrent callers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from urteil.harness.dependencies.installation import MissingDependency, cache_dir, install_once, run

INSTALLER = """
import sys, time
from pathlib import Path
from urteil.harness.dependencies.installation import cache_dir, install_once

def install(folder: Path) -> None:
    with (cache_dir() / "installs").open("a") as log:
        log.write("x")
    (folder / "first").write_text("1")
    print("begun", flush=True)
    time.sleep(float(sys.argv[1]))
    (folder / "second").write_text("2")

install_once(cache_dir() / "thing-1", install)
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def start(seconds: float) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", INSTALLER, str(seconds)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def test_two_at_once_install_once() -> None:
    first, second = start(0.5), start(0.5)
    for process in (first, second):
        process.communicate(timeout=240)
        assert process.returncode == 0
    assert (cache_dir() / "installs").read_text() == "x"
    assert sorted(path.name for path in (cache_dir() / "thing-1").iterdir()) == ["first", "second"]


def test_killed_install_does_not_count_as_complete() -> None:
    killed = start(60)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "begun\n"
    killed.kill()
    killed.communicate(timeout=240)
    target = cache_dir() / "thing-1"
    assert not target.exists()
    install_once(target, lambda folder: (folder / "whole").touch())
    assert [path.name for path in target.iterdir()] == ["whole"]
    assert list(cache_dir().glob(".thing-1.part.*")) == []


def test_a_failed_install_leaves_nothing() -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise MissingDependency("thing", "get it elsewhere")

    with pytest.raises(MissingDependency, match="get it elsewhere"):
        install_once(cache_dir() / "thing-2", fail)
    assert [path.name for path in cache_dir().iterdir()] == [".thing-2.lock"]


def test_failed_install_command_names_the_remedy() -> None:
    with pytest.raises(MissingDependency, match="install Foo") as failed:
        run(
            "foo",
            [sys.executable, "-c", "raise SystemExit('bad luck')"],
            how="install Foo",
            timeout_s=240,
        )
    assert "bad luck" in str(failed.value)
