"""Disks that are full, read-only or broken from the n-th change on, for every n.

All acknowledged
records survive, every failure is a storage error that names a file of the directory, and the stop
is not clean.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.broker.log.damage import HIT, PROPS, TOPIC_ID, crash_manager, quick_folder
from tests.broker.log.helpers import NOW_MS, FixedClock, append, batch, open_log, read_all
from urteil.broker.log.log_manager import LogManager
from urteil.broker.log.storage import Buffer, File, Storage
from urteil.broker.wire.errors import ErrorCode

FAILURES = [errno.ENOSPC, errno.EROFS, errno.EIO]
STEPS = 140


class FailingStorage(Storage):
    """Works `left` times more, then no change below `within` succeeds; full disks still shrink
    and remove."""

    def __init__(self, left: int, code: int, within: Path = Path("/")) -> None:
        self.left, self.code, self.within = left, code, within

    @property
    def failed(self) -> bool:
        return self.left <= 0

    def change(self, path: Path, *, frees: bool = False) -> None:
        if not path.is_relative_to(self.within):
            return
        self.left -= 1
        if self.left < 0 and not (frees and self.code == errno.ENOSPC):
            raise OSError(self.code, os.strerror(self.code), str(path))

    def open(self, path: Path, *, create: bool = False) -> File:
        if create and not path.exists():
            self.change(path)
        return FailingFile(self, super().open(path, create=create))

    def write_atomic(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        self.change(path)
        super().write_atomic(path, data, sync=False)

    def make_directory(self, path: Path) -> None:
        if not path.exists():
            self.change(path)
        super().make_directory(path)

    def rename(self, source: Path, target: Path) -> None:
        self.change(source, frees=True)
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        if path.exists():
            self.change(path, frees=True)
        super().remove(path)

    def remove_tree(self, path: Path) -> None:
        self.change(path, frees=True)
        super().remove_tree(path)

    def sync_directory(self, path: Path) -> None:
        pass


class FailingFile(File):
    __slots__ = ("_storage",)

    def __init__(self, storage: FailingStorage, file: File) -> None:
        super().__init__(file.path, file._fd)
        self._storage = storage

    def write_at(self, buffers: Sequence[Buffer], size: int, position: int) -> None:
        try:
            self._storage.change(self.path)
        except OSError:
            if self._storage.code == errno.ENOSPC:  # a part still fits
                super().write_at([b"".join(buffers)[: size // 2]], size // 2, position)
            raise
        super().write_at(buffers, size, position)

    def truncate(self, size: int) -> None:
        if size != self.size():
            self._storage.change(self.path, frees=True)
        super().truncate(size)

    def sync(self) -> None:
        self._storage.change(self.path)


def _work(manager: LogManager, acknowledged: list[tuple[int, bytes | None]]) -> None:
    """Appends, truncations and checkpoints of a broker, until the directory fails."""
    manager.load("cluster")
    log = manager.get_or_create(*HIT, TOPIC_ID, {"segment.bytes": "600", "flush.messages": "7"})
    for number in range(24):
        sent = batch([b"%d" % number] * 2, producer=(1, 0, number * 2))
        result = log.append_as_leader(sent, number // 8, NOW_MS)
        if result.error is not ErrorCode.NONE:
            assert result.error is ErrorCode.KAFKA_STORAGE_ERROR
            assert log.failure is not None
            raise log.failure
        first = result.base_offset
        acknowledged += [(first, b"%d" % number), (first + 1, b"%d" % number)]
        if number % 6 == 5:
            log.update_high_watermark(log.log_end_offset)
            manager.tick(NOW_MS + number)
            manager.checkpoint_high_watermarks({HIT: log.high_watermark})
            manager.checkpoint_recovery_points()
            manager.checkpoint_log_start_offsets()
    del acknowledged[44:]
    log.truncate_to(44)
    manager.get_or_create("gone", 0)
    manager.delete("gone", 0)
    manager.tick(NOW_MS + 100_000)


@pytest.mark.parametrize("code", FAILURES, ids=[errno.errorcode[code] for code in FAILURES])
def test_disk_failure_at_any_step_loses_no_acknowledged_record(code: int) -> None:
    never = 0
    for step in range(STEPS):
        with quick_folder() as name:
            never += _fail_at(step, code, Path(name))
    assert 0 < never < STEPS // 2, "the steps should reach the end of the work and a bit beyond"


def _fail_at(step: int, code: int, folder: Path) -> int:
    storage = FailingStorage(step, code)
    manager = LogManager([folder], PROPS, FixedClock(), storage=storage)
    acknowledged: list[tuple[int, bytes | None]] = []
    failure = ""
    try:
        _work(manager, acknowledged)
    except OSError as error:
        failure = str(error)
    assert not failure or (storage.failed and str(folder) in failure), f"step {step}: {failure}"
    finished = not storage.failed
    manager.shutdown()  # never raises: a stop is a stop
    was_clean = (folder / ".kafka_cleanshutdown").exists()
    assert was_clean or storage.failed
    crash_manager(manager)
    again = LogManager([folder], PROPS, FixedClock())
    again.load("cluster")
    log = again.get(*HIT)
    records = read_all(log) if log is not None else []
    # what was not acknowledged may be there, as after any crash
    assert records[: len(acknowledged)] == acknowledged, f"step {step}"
    assert len(records) - len(acknowledged) in (0, 2, 4), f"step {step}"
    crash_manager(again)
    return int(finished)


def test_device_error_during_sendfile_fails_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    append(log, batch([b"x" * 100_000]))
    (lent,) = log.read(0, 1 << 20, upto=1, lend=True).records

    failures = [errno.EPIPE, errno.ECONNRESET, errno.EAGAIN, errno.EIO]  # the last: the device's

    def broken(*_: object) -> int:
        raise OSError(failures[0], os.strerror(failures[0]))

    monkeypatch.setattr(os, "sendfile", broken)
    while failures:
        assert log.failure is None
        with pytest.raises(OSError, match=re.escape(os.strerror(failures[0]))):
            lent.send(1, 0)
        del failures[0]
    assert log.failure is not None
    assert log.failure.errno == errno.EIO
