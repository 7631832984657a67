"""Kills at any step of any operation: the log then has exactly the acknowledged records.

The storage dies before its n-th change, as a process does; the log is then opened again from
what the files hold.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.log.helpers import NOW_MS, append, batch, close_logs, open_log, read_all
from tests.broker.log.test_recovery import check_indexes
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.storage import Buffer, File, Storage

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100, retention_ms=100)


class Killed(BaseException):
    """The process was killed."""


class DyingStorage(Storage):
    """Dies before the change number `steps`."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Killed

    def open(self, path: Path, *, create: bool = False) -> File:
        if create and not path.exists():
            self.step()
        return DyingFile(self, super().open(path, create=create))

    def write_atomic(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        self.step()
        super().write_atomic(path, data, sync=False)

    def rename(self, source: Path, target: Path) -> None:
        self.step()
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        if path.exists():
            self.step()
        super().remove(path)


class DyingFile(File):
    __slots__ = ("_storage",)

    def __init__(self, storage: DyingStorage, file: File) -> None:
        super().__init__(file.path, file._fd)
        self._storage = storage

    def write_at(self, buffers: Sequence[Buffer], size: int, position: int) -> None:
        try:
            self._storage.step()
        except Killed:
            super().write_at([b"".join(buffers)[: size // 2]], size // 2, position)
            raise
        super().write_at(buffers, size, position)

    def truncate(self, size: int) -> None:
        if size != self.size():
            self._storage.step()
        super().truncate(size)

    def sync(self) -> None:
        self._storage.step()


Step = tuple[str, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append"] * 8 + ["truncate", "start", "retention", "anew", "flush"]),
        st.floats(0, 1),
    ),
    min_size=1,
    max_size=40,
)
Content = list[tuple[int, bytes | None]]


def play(log: PartitionLog, step: Step, number: int, before: Content) -> Content:
    """Do one step; return the content of the log after it."""
    what, where = step
    start, end = log.log_start_offset, log.log_end_offset
    at = start + int(where * (end - start))
    if what == "append":
        producer = (1, number, 0)
        append(log, batch([b"%d" % number], producer=None if where < 0.5 else producer), number)
        return [*before, (end, b"%d" % number)]
    if what == "truncate":
        log.truncate_to(at)
        return [pair for pair in before if pair[0] < at]
    if what == "anew":
        log.truncate_fully_and_start_at(at + 5)
        return []
    if what == "flush":
        log.flush()
        return before
    log.update_high_watermark(at)
    if what == "start":
        log.increment_log_start_offset(at)
    else:
        log.apply_retention(NOW_MS + 1000)
        log.remove_deleted(NOW_MS + 10**9)
    return [pair for pair in before if pair[0] >= log.log_start_offset]


@settings(max_examples=150, deadline=None)
@given(program=STEPS, steps=st.integers(0, 150))
def test_kill_at_any_step_loses_no_acknowledged_record(program: list[Step], steps: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        storage = DyingStorage(10**9)
        log = open_log(folder, config=CONFIG, storage=storage)
        storage.steps = steps
        content: Content = []
        pending: Step = ("", 0.0)
        try:
            for number, pending in enumerate(program):
                content = play(log, pending, number, content)
        except Killed:
            pass
        else:
            pending = ("", 0.0)
        close_logs(log)
        again = open_log(folder, config=CONFIG)
        records = read_all(again)
        check_indexes(again)
        _check(records, content, pending[0])
        assert [epoch for epoch, _ in again.epochs.entries] == sorted(
            {epoch for epoch, _ in again.epochs.entries}
        )
        assert all(start <= again.log_end_offset for _, start in again.epochs.entries)
        value = append(again, batch([b"next"]), epoch=1000).base_offset
        assert read_all(again)[-1] == (value, b"next")
        close_logs(again)


def _check(records: Content, content: Content, pending: str) -> None:
    """Check the content after the kill: the pending step may be done, in part, or not."""
    offsets = [offset for offset, _ in records]
    assert offsets == list(range(offsets[0], offsets[0] + len(offsets))) if offsets else True
    expected = dict(content)
    known = [pair for pair in records if pair[0] in expected]
    assert known == [(offset, expected[offset]) for offset, _ in known]
    if not content:
        return  # the log start is in a checkpoint of the directory, not here: it may be lower now
    if pending == "append":
        assert records[-1:] == content[-1:] or records[-2:-1] == content[-1:]
    elif pending not in ("truncate", "anew", "retention"):
        assert records[-len(content) :] == content
