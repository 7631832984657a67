"""Power cuts that go by what a process has flushed, not by what its broker believes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from tests.chaos.paper import PaperCluster
from tests.chaos.paper_disks import BATCH_BYTES, write_log, write_recovery_points
from urteil.chaos import log_directories
from urteil.chaos.entry_changes import Created, EntryChange, Removed, Renamed
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.flushed_files import FlushedFiles
from urteil.harness.dependencies.flush_recorder import RECORD_VARIABLE, flush_recorder

PROGRAM = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for step in sys.argv[2:]:
    action, _, size = step.partition(":")
    if action == "write":
        os.write(file, b"x" * int(size))
    elif action == "cut":
        os.ftruncate(file, int(size))
    else:
        getattr(os, action)(file)
"""


def play(folder: Path, *steps: str, path: Path | None = None) -> FlushedFiles:
    """What is recorded of a process that writes, cuts and flushes a file."""
    record = folder / "flushes"
    env = os.environ | {"LD_PRELOAD": str(flush_recorder()), RECORD_VARIABLE: str(record)}
    target = str(path or folder / "file")
    subprocess.run([sys.executable, "-c", PROGRAM, target, *steps], env=env, check=True)
    return FlushedFiles(record)


@pytest.mark.parametrize(
    ("steps", "flushed"),
    [
        (["write:100"], 0),
        (["write:100", "fsync"], 100),
        (["write:100", "fdatasync", "write:50"], 100),
        (["write:100", "fsync", "write:50", "fdatasync"], 150),
        (["write:100", "fsync", "cut:40"], 40),
        (["write:100", "fsync", "cut:40", "write:90"], 40),
        (["cut:40", "write:90"], 0),
    ],
)
def test_flushed_size_is_that_of_the_last_flush(
    steps: list[str], flushed: int, tmp_path: Path
) -> None:
    assert play(tmp_path, *steps).flushed_bytes(tmp_path / "file") == flushed


def test_flushes_of_a_renamed_file_and_of_earlier_processes_count(tmp_path: Path) -> None:
    play(tmp_path, "write:10", "fsync")
    (tmp_path / "file").rename(tmp_path / "other")
    files = play(tmp_path, "write:10", path=tmp_path / "third")
    assert files.flushed_bytes(tmp_path / "other") == 10
    assert files.flushed_bytes(tmp_path / "third") == 0


ENTRIES = """
import os, sys
for step in sys.argv[1:]:
    action, *names = step.split(":")
    if action == "write":
        open(names[0], "w").write(names[1])
    elif action == "flush":
        os.fsync(os.open(names[0], os.O_DIRECTORY))
    elif action.startswith("cannot_"):
        try:
            getattr(os, action.removeprefix("cannot_"))(*names)
        except OSError:
            continue
        sys.exit(f"{step}: it could")
    else:
        getattr(os, action)(*names)
"""


def change_entries(log_dir: Path, *steps: str, record: Path | None = None) -> FlushedFiles:
    """What is recorded of a process that does the steps in a log directory."""
    log_dir.mkdir(exist_ok=True)
    record = record or log_dir.parent / "flushes"
    env = os.environ | {"LD_PRELOAD": str(flush_recorder()), RECORD_VARIABLE: str(record)}
    subprocess.run([sys.executable, "-c", ENTRIES, *steps], env=env, check=True, cwd=log_dir)
    return FlushedFiles(record)


def content(log_dir: Path) -> dict[str, str | None]:
    """Every file's text and None for every folder, by path."""
    return {
        str(path.relative_to(log_dir)): path.read_text() if path.is_file() else None
        for path in log_dir.rglob("*")
    }


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        (["write:a:1"], {}),
        (["write:a:1", "flush:."], {"a": "1"}),
        (["write:a:1", "flush:.", "write:a:2"], {"a": "2"}),
        (["write:a:1", "flush:.", "write:b:2"], {"a": "1"}),
        (["write:a:1", "flush:.", "unlink:a"], {"a": "1"}),
        (["write:a:1", "flush:.", "unlink:a", "write:a:2"], {"a": "1"}),
        (["write:a:1", "flush:.", "unlink:a", "flush:."], {}),
        (["write:a:1", "flush:.", "rename:a:b"], {"a": "1"}),
        (["write:a:1", "flush:.", "rename:a:b", "unlink:b"], {"a": "1"}),
        (["write:a:1", "write:b:2", "flush:.", "rename:a:b"], {"a": "1", "b": "2"}),
        (["write:a:1", "write:b:2", "flush:.", "rename:a:b", "flush:."], {"b": "1"}),
        (["write:a:1", "flush:.", "write:b:2", "rename:b:a"], {"a": "1"}),
        (["write:a:1", "flush:.", "cannot_rename:x:a", "cannot_unlink:y"], {"a": "1"}),
        (["mkdir:t-0", "write:t-0/a:1", "flush:t-0"], {}),
        (["mkdir:t-0", "flush:.", "write:t-0/a:1"], {"t-0": None}),
        (["mkdir:t-0", "flush:.", "write:t-0/a:1", "flush:t-0"], {"t-0": None, "t-0/a": "1"}),
        (["mkdir:t-0", "flush:.", "cannot_mkdir:t-0", "write:a b:1"], {"t-0": None, "a b": "1"}),
    ],
)
def test_power_cut_undoes_changes_of_entries_that_were_not_flushed(
    steps: list[str], left: dict[str, str | None], tmp_path: Path
) -> None:
    """A name with a blank is not recorded."""
    flushed = change_entries(log_dir := tmp_path / "data", *steps)
    log_directories.lose_entries(log_dir, flushed, time.monotonic_ns())
    assert content(log_dir) == left
    again = FlushedFiles(tmp_path / "flushes")
    log_directories.lose_entries(log_dir, again, time.monotonic_ns())
    assert content(log_dir) == left, "the disk is what the first power cut left"


def test_entries_are_kept_when_they_are_old(tmp_path: Path) -> None:
    flushed = change_entries(log_dir := tmp_path / "data", "write:a:1")
    later_ns = time.monotonic_ns() + round(1e9 * log_directories.SETTLED_S)
    log_directories.lose_entries(log_dir, flushed, later_ns)
    assert content(log_dir) == {"a": "1"}


@pytest.mark.parametrize("interrupted", [Created(1, "b"), Renamed(1, "a", "b"), Removed(1, "b")])
def test_change_that_did_not_happen_is_not_undone(interrupted: EntryChange, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    interrupted.undo(tmp_path)
    assert content(tmp_path) == {"a": "1"}


def test_segment_without_its_entry_is_lost_though_its_data_were_flushed(tmp_path: Path) -> None:
    """A broker that flushes the file of a new segment and not the directory declares it as
    flushed."""
    log = tmp_path / "data" / "t-0"
    second = f"{20:020d}.log"
    change_entries(tmp_path / "data", "mkdir:t-0", "flush:.")
    write_log(log.with_name("model"))
    for path in log.with_name("model").iterdir():
        if path.name != second:
            path.rename(log / path.name)
    write_recovery_points(tmp_path / "data", t_0=40)
    flushed = change_entries(tmp_path / "data", f"write:t-0/{second}:{'x' * 99}")
    (log.with_name("model") / second).rename(log / second)
    (loss,) = log_directories.lose_entries(tmp_path / "data", flushed, time.monotonic_ns())
    assert (loss.first_lost, loss.promised, loss.lost_bytes) == (20, 40, 5 * BATCH_BYTES)
    assert str(loss) == (
        "t-0 without its files from offset 20 on (500 bytes), though its recovery point is 40"
    )


def flush_up_to(log: Path, *sizes: int) -> FlushedFiles:
    """So many bytes of each segment of a log are flushed, the rest is written behind them."""
    for segment, size in zip(log_directories.segments(log), sizes, strict=True):
        content = segment.read_bytes()
        play(log.parent, f"cut:{size}", "fsync", path=segment)
        with segment.open("ab") as file:
            file.write(content[size:])
    return FlushedFiles(log.parent / "flushes")


@pytest.mark.parametrize("seed", range(4))
def test_power_cut_takes_what_was_not_flushed_from_every_segment(seed: int, tmp_path: Path) -> None:
    write_log(log := tmp_path / "t-0")
    flushed = flush_up_to(log, 2 * BATCH_BYTES, 0)
    before = [path.read_bytes() for path in log_directories.segments(log)]
    cut = log_directories.cut_power(log, 0, Random(seed), flushed=flushed)
    assert cut is not None
    after = [path.read_bytes() for path in log_directories.segments(log)]
    assert after[0].startswith(before[0][: 2 * BATCH_BYTES])
    assert all(new != old for old, new in zip(before, after, strict=True))
    assert 8 <= cut.first_lost == cut.promised < 20, "in the first segment"


def test_flushed_log_survives_a_power_cut_whatever_its_recovery_point(tmp_path: Path) -> None:
    write_log(log := tmp_path / "t-0")
    flushed = flush_up_to(log, 5 * BATCH_BYTES, 5 * BATCH_BYTES)
    assert log_directories.cut_power(log, 0, Random(1), flushed=flushed) is None


def test_loss_below_the_recovery_point_is_not_excused(tmp_path: Path) -> None:
    """The broker declared 40 offsets as flushed, and had flushed 20."""
    write_log(log := tmp_path / "t-0")
    flushed = flush_up_to(log, 5 * BATCH_BYTES, 0)
    cut = log_directories.cut_power(log, 40, Random(1), flushed=flushed)
    assert cut is not None
    assert 20 <= cut.first_lost < cut.promised == 40
    assert "though its recovery point is 40" in str(cut)


def test_fault_goes_by_the_record(tmp_path: Path) -> None:
    cluster = PaperCluster()
    log = cluster.disks.folder("b2") / "t-0"
    cluster.disks.flushed = flush_up_to(log, 5 * BATCH_BYTES, 5 * BATCH_BYTES)
    fault = FAULTS["power_cut"](FaultArguments(target="b2", topic="t"))
    text = fault.begin(cluster).text
    assert "by the record of its flushes: everything had been flushed" in text


def test_fault_excuses_what_lies_behind_the_first_loss_of_a_log() -> None:
    """The first segment is cut behind offset 8, and the second, from 20 on, is gone with its
    entry. The recovery point is 12."""
    cluster = PaperCluster()
    log = cluster.disks.folder("b2") / "t-0"
    second = log_directories.segments(log)[1]
    content = second.read_bytes()
    flush_up_to(log, 2 * BATCH_BYTES, 5 * BATCH_BYTES)
    second.unlink()
    cluster.disks.flushed = change_entries(
        log.parent, f"write:t-0/{second.name}:x", record=log.parent / "flushes"
    )
    second.write_bytes(content)
    fault = FAULTS["power_cut"](FaultArguments(target="b2", topic="t"))
    proof = fault.begin(cluster)
    assert "of 1 logs lost by the record of its flushes: t-0 without its files from offset 20" in (
        proof.text
    )
    ((promised, _),) = json.loads(proof.harm)["brokers"]["b2"].values()
    assert 12 <= promised < 20
    assert not second.exists()
