"""Power cuts that go by what a process has flushed, not by what its broker believes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.chaos.paper import PaperCluster
from tests.chaos.paper_disks import BATCH_BYTES, write_log
from urteil.chaos import log_directories
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
    with record.open() as lines:
        return FlushedFiles(lines)


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


def flush_up_to(log: Path, *sizes: int) -> FlushedFiles:
    """So many bytes of each segment of a log are flushed, the rest is written behind them."""
    for segment, size in zip(log_directories.segments(log), sizes, strict=True):
        content = segment.read_bytes()
        play(log.parent, f"cut:{size}", "fsync", path=segment)
        with segment.open("ab") as file:
            file.write(content[size:])
    with (log.parent / "flushes").open() as lines:
        return FlushedFiles(lines)


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
