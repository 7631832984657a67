"""Damage in one segment: later segments stay, and removed bytes move to kept files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.log.helpers import NOW_MS, append, batch, close_logs, open_log, read_all
from tests.broker.log.test_recovery import check_indexes, stored
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.log.storage import Storage
from urteil.broker.wire.batches import build_batch

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)
FAR = 3_000_000_000


def two_segments(folder: Path) -> PartitionLog:
    """Two hundred records in batches of five, a hundred in each of two segments; all durable."""
    log = open_log(folder)
    for number in range(40):
        if number == 20:
            log.roll(NOW_MS)
        append(log, batch([b"%d" % number] * 5))
    log.flush()
    assert log.segments.base_offsets == [0, 100]
    return log


def offsets(log: PartitionLog) -> list[int]:
    return [offset for offset, _ in read_all(log)]


def kept(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(folder.glob("*.kept*"))}


def reopened(folder: Path, *, clean: bool, point: int, end: int = 200) -> PartitionLog:
    remembered = CheckpointedState(recovery_point=point, high_watermark=end, clean=clean)
    return open_log(folder, remembered=remembered)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("cut", ["a batch", "half a batch", "all"])
def test_truncated_flushed_segment_does_not_end_the_log(
    tmp_path: Path, cut: str, clean: bool
) -> None:
    log = two_segments(tmp_path)
    last = [each for each in stored(log) if each.last_offset < 100][-1]
    log.close()
    keeps = {"a batch": last.position, "half a batch": last.position + 40, "all": 0}[cut]
    os.truncate(last.segment, keeps)
    again = reopened(tmp_path, clean=clean, point=200)
    first = [] if cut == "all" else list(range(95))
    assert offsets(again) == [*first, *range(100, 200)]
    assert again.log_end_offset == 200
    assert kept(tmp_path) == (
        {"00000000000000000095.log.kept": 40} if cut == "half a batch" else {}
    )
    check_indexes(again)
    assert append(again).base_offset == 200
    again.close()
    assert offsets(reopened(tmp_path, clean=True, point=201))[-101:] == list(range(100, 201))


@pytest.mark.parametrize("clean", [True, False])
def test_batches_after_damage_in_a_flushed_segment_stay(tmp_path: Path, clean: bool) -> None:
    log = two_segments(tmp_path)
    third = stored(log)[2]
    log.close()
    data = bytearray(third.segment.read_bytes())
    data[third.position + 70] ^= 1
    third.segment.write_bytes(data)
    for path in tmp_path.glob("*.index"):
        path.unlink()
    again = reopened(tmp_path, clean=clean, point=200)
    assert [each.base_offset for each in stored(again)] == list(range(0, 200, 5))
    assert third.segment.read_bytes() == data
    assert (again.log_end_offset, kept(tmp_path)) == (200, {})


def test_segments_after_unflushed_damage_become_kept_files(tmp_path: Path) -> None:
    """A power cut may have lost any unflushed bytes, so the log ends at the damage."""
    log = two_segments(tmp_path)
    third, content = stored(log)[2], (tmp_path / "00000000000000000100.log").read_bytes()
    close_logs(log)
    data = third.segment.read_bytes()
    os.truncate(third.segment, third.position + 9)
    again = reopened(tmp_path, clean=False, point=0)
    assert offsets(again) == list(range(10))
    assert kept(tmp_path) == {
        "00000000000000000010.log.kept": 9,
        "00000000000000000100.log.kept": len(content),
    }
    assert (tmp_path / "00000000000000000100.log.kept").read_bytes() == content
    assert (tmp_path / "00000000000000000010.log.kept").read_bytes() == data[
        third.position : third.position + 9
    ]
    close_logs(again)
    (tmp_path / "00000000000000000100.log.kept").rename(tmp_path / "00000000000000000100.log")
    restored = reopened(tmp_path, clean=False, point=200)
    assert offsets(restored) == [*range(10), *range(100, 200)]


def test_second_kept_file_at_an_offset_gets_its_own_name(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    size = log.segments.active_segment.size
    close_logs(log)
    for number in range(3):
        with open(tmp_path / "00000000000000000000.log", "ab") as file:
            file.write(b"%d torn" % number)
        close_logs(open_log(tmp_path))
    assert (tmp_path / "00000000000000000000.log").stat().st_size == size
    assert kept(tmp_path) == {
        "00000000000000000001.log.kept": 6,
        "00000000000000000001.log.kept.2": 6,
        "00000000000000000001.log.kept.3": 6,
    }


def test_log_that_ends_before_its_start_becomes_kept_files(tmp_path: Path) -> None:
    close_logs(two_segments(tmp_path))
    remembered = CheckpointedState(recovery_point=200, log_start_offset=500, clean=True)
    again = open_log(tmp_path, remembered=remembered)
    assert (again.log_start_offset, again.log_end_offset) == (500, 500)
    assert list(kept(tmp_path)) == [
        "00000000000000000000.log.kept",
        "00000000000000000100.log.kept",
    ]


def test_zeros_of_preallocation_are_not_kept(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=replace(CONFIG, preallocate=True))
    append(log)
    close_logs(log)
    assert (tmp_path / "00000000000000000000.log").stat().st_size == 900
    assert open_log(tmp_path, config=CONFIG).log_end_offset == 1
    assert kept(tmp_path) == {}


@pytest.mark.parametrize(
    ("limits", "later_ms", "start", "stays"),
    [
        ({"retention_ms": 1000}, 900, 0, True),
        ({"retention_ms": 1000}, 1100, 0, False),
        ({"retention_ms": -1}, 10**12, 0, True),
        ({"retention_ms": 1000, "cleanup_policy": "compact"}, 10**12, 0, True),
        ({"retention_ms": -1, "retention_bytes": 10_000}, 0, 0, True),
        ({"retention_ms": -1, "retention_bytes": 100}, 0, 0, False),
        ({"retention_ms": -1}, 0, 2, False),
    ],
)
def test_retention_removes_kept_files(
    tmp_path: Path, limits: dict[str, int], later_ms: int, start: int, stays: bool
) -> None:
    log = open_log(tmp_path)
    append(log)
    close_logs(log)
    with open(tmp_path / "00000000000000000000.log", "ab") as file:
        file.write(b"torn" * 20)
    again = open_log(tmp_path, config=replace(LogConfig(), **limits))
    append(again, batch([b"x"], timestamp_ms=10**13))
    again.update_high_watermark(2)
    again.increment_log_start_offset(start)
    again.apply_retention(NOW_MS + later_ms)
    assert bool(kept(tmp_path)) is stays
    close_logs(again)


# Offsets that leap


def leap(folder: Path, *bases: int) -> Path:
    path = folder / f"{0:020d}.log"
    path.write_bytes(
        b"".join(
            build_batch([(b"k", b"%d" % at, [], NOW_MS)], base_offset=at, leader_epoch=0)
            for at in bases
        )
    )
    return path


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("bases", "segments"),
    [
        ((0, 5, FAR), [0, FAR]),
        ((0, 5, FAR, FAR + 1, 3 * FAR), [0, FAR, 3 * FAR]),
        ((FAR, FAR + 7), [FAR]),
        ((0, 2**31 - 1), [0]),
        ((0, 2**31), [0, 2**31]),
    ],
)
def test_segment_with_unreachable_offsets_is_split(
    tmp_path: Path, bases: tuple[int, ...], segments: list[int], clean: bool
) -> None:
    leap(tmp_path, *bases)
    for _ in range(2):
        log = open_log(tmp_path, remembered=CheckpointedState(clean=clean))
        assert log.segments.base_offsets == segments
        assert offsets(log) == list(bases)
        assert (log.log_start_offset, log.log_end_offset) == (segments[0], bases[-1] + 1)
        close_logs(log)
    assert kept(tmp_path) == {}


class PowerCut(BaseException):
    """The machine is off."""


class DiesBeforeCut(Storage):
    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        if target.name == f"{FAR:020d}.log":
            raise PowerCut


def test_interrupted_split_loses_and_repeats_no_record(tmp_path: Path) -> None:
    leap(tmp_path, 0, 5, FAR)
    with pytest.raises(PowerCut):
        open_log(tmp_path, storage=DiesBeforeCut())
    log = open_log(tmp_path)
    assert offsets(log) == [0, 5, FAR]
    assert kept(tmp_path) == {}
