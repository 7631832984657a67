"""Disks of brokers that are processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until
from urteil.chaos.observations import LabFailure
from urteil.harness.dependencies.flush_recorder import RECORD_VARIABLE, flush_recorder
from urteil.harness.runtimes.disks import (
    ProcessDisks,
    can_mount,
    flush_record,
    has_own_mounts,
)

WRITER = 'until ! touch "$0/file"; do :; done 2>/dev/null'
OPENER = """
import os, sys
folder, files, number = sys.argv[1], [], 0
print(flush=True)
try:
    while True:
        files.append(open(os.path.join(folder, str(number)), "w"))
        number += 1
        if number % 500 == 0:
            files.clear()
except OSError:
    pass
"""
FOLDERS = 20


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"disk{number}" for number in range(FOLDERS)]
    for path in paths:
        path.mkdir()
    return paths


@pytest.fixture
def writer(folders: list[Path]) -> Iterator[int]:
    """In a mount namespace of its own, it ends as soon as its first folder takes no file."""
    alone = ["unshare", "--mount"] if can_mount() else []
    with subprocess.Popen([*alone, "sh", "-c", WRITER, str(folders[0])]) as process:
        until(lambda: has_own_mounts(process.pid) or not alone)
        yield process.pid
        process.kill()


def test_disk_turns_read_only_although_its_broker_exits(folders: list[Path], writer: int) -> None:
    disks = ProcessDisks(lambda _: folders, lambda _: writer)
    if can_mount():
        assert disks.make_read_only("b1") == [f"{folder} is mounted ro" for folder in folders]
    else:
        with pytest.raises(LabFailure, match="need root"):
            disks.make_read_only("b1")


def test_disk_turns_read_only_although_its_broker_opens_files(folders: list[Path]) -> None:
    if not can_mount():
        return
    for folder in folders[:5]:
        argv = ["unshare", "--mount", sys.executable, "-c", OPENER, str(folder)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            pid = process.pid
            disks = ProcessDisks(lambda _, path=folder: [path], lambda _, pid=pid: pid)
            try:
                assert disks.make_read_only("b1") == [f"{folder} is mounted ro"]
                process.wait(timeout=10)
            finally:
                process.kill()


def test_shared_mounts_are_not_changed(folders: list[Path]) -> None:
    disks = ProcessDisks(lambda _: folders, lambda _: os.getpid())
    with pytest.raises(LabFailure, match="no mounts of its own" if can_mount() else "need root"):
        disks.make_read_only("b1")
    (folders[0] / "file").touch()


def test_missing_record_of_flushes_is_a_failure_of_the_lab(
    folders: list[Path],
) -> None:
    """Otherwise a power cut would go by what the broker declares."""
    disks = ProcessDisks(lambda _: folders, lambda _: 0)
    assert disks.flushed_files("b1") is None, "none are to be recorded"
    flush_record(folders).touch()
    with pytest.raises(LabFailure, match="b1 did not load the library that records flushes"):
        disks.flushed_files("b1")
    env = os.environ | {
        "LD_PRELOAD": str(flush_recorder()),
        RECORD_VARIABLE: str(flush_record(folders)),
    }
    subprocess.run([sys.executable, "-c", ""], env=env, check=True)
    assert disks.flushed_files("b1") is not None
