"""Kills at any step of a cleaning: the log keeps its value of each key and can be cleaned again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.log.cleaner.helpers import COMPACTED, batches, clean, newest, pairs, put
from tests.broker.log.damage import Unsynced, quick_folder
from tests.broker.log.helpers import NOW_MS, close_logs, open_log
from tests.broker.log.test_crash_steps import DyingStorage, Killed
from tests.broker.log.test_recovery import check_indexes
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import CheckpointedState

LIVES = 10**9


class _Dying(DyingStorage):
    """Without waiting for the device."""

    def sync_directory(self, path: Path) -> None:
        self.step()


def _fill(log: PartitionLog) -> None:
    """Segments that shrink, one of which nothing stays, tombstones, an aborted transaction."""
    for number in range(24):
        put(log, (b"a", b"%d" % number), (b"k%d" % (number % 7), b"x" * 50), compression=number % 2)
        if number % 4 == 3:
            log.roll(NOW_MS)
    put(log, (b"a", None))
    put(log, (b"k3", b"gone"), producer_id=7, producer_epoch=0, base_sequence=0,
        transactional=True)  # fmt: skip
    put(log, (b"\0\0\0\0", b"\0\0\0\0\0\0"), producer_id=7, producer_epoch=0, transactional=True,
        control=True)  # fmt: skip
    log.roll(NOW_MS)
    put(log, (b"last", b"1"))


def _killed_after(steps: int, folder: Path, *, clean_stop: bool) -> bool:
    """Whether the cleaning came to its end before so many steps; checks the log after it."""
    storage = _Dying(LIVES)
    log = open_log(folder, config=COMPACTED, storage=storage)
    _fill(log)
    log.flush()
    state = newest([pair for pair in pairs(log) if pair[2] != b"gone"])
    end, point = log.log_end_offset, log.recovery_point
    storage.steps = steps
    finished = True
    try:
        clean(log)
    except Killed:
        finished = False
    close_logs(log)
    remembered = CheckpointedState(recovery_point=point, clean=clean_stop)
    again = open_log(folder, config=COMPACTED, storage=Unsynced(), remembered=remembered)
    again.update_high_watermark(again.log_end_offset)
    assert newest([pair for pair in pairs(again) if pair[2] != b"gone"]) == state
    assert again.log_end_offset == end
    check_indexes(again)
    assert not [path for path in folder.iterdir() if path.suffix in (".cleaned", ".swap")]
    clean(again)
    list(batches(again))
    cleaned = [pair for pair in pairs(again) if pair[0] < (again.cleaned_to or 0)]
    assert newest(pairs(again)) == state
    assert len({key for _, key, _ in cleaned}) == len(cleaned)
    close_logs(again)
    return finished


@pytest.mark.parametrize("clean_stop", [False, True])
def test_kill_at_every_step_of_a_cleaning_loses_nothing(clean_stop: bool) -> None:
    steps, finished = -1, False
    while not finished:
        steps += 1
        with quick_folder() as name:
            finished = _killed_after(steps, Path(name), clean_stop=clean_stop)
    assert steps > 40
