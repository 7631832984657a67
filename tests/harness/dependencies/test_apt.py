"""Debian packages beside another apt, whose locks a process of the test holds."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from urteil.harness.dependencies import apt

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "lock-frontend"


@pytest.fixture
def holder(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds `lock` as apt does, until its standard input is closed."""
    argv = [sys.executable, "-c", HOLDER, str(lock)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_wait_ends_when_the_holder_of_the_lock_ends(
    lock: Path, holder: subprocess.Popen[str]
) -> None:
    reports: list[str] = []

    def end_holder(line: str) -> None:
        reports.append(line)
        assert holder.stdin is not None
        holder.stdin.close()

    apt.wait_for_locks([lock], time.monotonic() + 240, end_holder)
    assert holder.wait(240) == 0
    assert len(reports) == 1
    assert f"process {holder.pid} (python" in reports[0]
    assert f"holds {lock}; up to 2" in reports[0]


@pytest.mark.usefixtures("holder")
def test_wait_fails_at_its_deadline_and_names_the_holder(lock: Path) -> None:
    with pytest.raises(apt.AptError, match=rf"process \d+ \(python.*\) holds {lock}; wait until"):
        apt.wait_for_locks([lock], time.monotonic(), lambda line: None)


def test_free_and_missing_locks_are_not_waited_for(tmp_path: Path, lock: Path) -> None:
    lock.touch()
    reports: list[str] = []
    apt.wait_for_locks([lock, tmp_path / "none"], time.monotonic(), reports.append)
    assert reports == []


APT_GET = """#!/bin/sh
echo "$@" >>{calls}
case "$*" in
*update*) exit 0 ;;
esac
if [ "$(grep -c install {calls})" -eq 1 ]; then echo "{first_answer}"; exit 100; fi
echo "After this operation, 12.3 MB of additional disk space will be used."
"""
"""The first installation fails with `first_answer`, later ones succeed."""


def calls_of_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_answer: str) -> str:
    """The calls of apt-get that `install` makes, by their verbs."""
    calls = tmp_path / "calls"
    program = tmp_path / "apt-get"
    program.write_text(APT_GET.format(calls=calls, first_answer=first_answer))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(apt, "LOCKS", ())
    apt.install("strace")
    return " ".join(line.split()[2] for line in calls.read_text().splitlines())


def test_install_that_lost_a_lock_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"
    assert calls_of_install(tmp_path, monkeypatch, answer) == "install install"
    assert capsys.readouterr().err == "setup: strace: 12 MB, 0 s\n"


def test_install_without_package_lists_updates_them_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = "E: Unable to locate package strace"
    assert calls_of_install(tmp_path, monkeypatch, answer) == "install update install"


def test_install_completes_an_interrupted_one_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dpkg = tmp_path / "dpkg"
    dpkg.write_text(f'#!/bin/sh\necho - - dpkg "$@" >>{tmp_path / "calls"}\n')
    dpkg.chmod(0o755)
    answer = "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct it"
    assert calls_of_install(tmp_path, monkeypatch, answer) == "install dpkg install"


def test_failed_install_ends_with_the_last_lines_of_apt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "apt-get"
    program.write_text("#!/bin/sh\necho 'E: no space left'; exit 100\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(apt, "LOCKS", ())
    with pytest.raises(apt.AptError, match=r"apt-get .*update -q failed:\nE: no space left"):
        apt.install("strace")
