from pathlib import Path

import pytest

from tests.broker.log.helpers import append, batch, open_log
from urteil.broker.log.checkpoints import LEADER_EPOCHS
from urteil.broker.log.epoch_cache import EpochCache
from urteil.broker.log.storage import Storage


@pytest.fixture
def cache(tmp_path: Path) -> EpochCache:
    cache = EpochCache(Storage(), tmp_path)
    for epoch, start in [(2, 10), (4, 20), (7, 30)]:
        cache.assign(epoch, start)
    return cache


@pytest.mark.parametrize(
    ("requested", "answer"),
    [
        (-1, (-1, -1)),  # no epoch asked for
        (0, (0, 10)),  # older than all known: ends where the first one begins
        (1, (1, 10)),
        (2, (2, 20)),
        (3, (2, 20)),  # never here: the largest one below (KIP-279)
        (4, (4, 30)),
        (5, (4, 30)),
        (6, (4, 30)),
        (7, (7, 42)),  # the latest ends with the log
        (8, (-1, -1)),  # newer than all known
    ],
)
def test_end_offsets_follow_kip_279(
    cache: EpochCache, requested: int, answer: tuple[int, int]
) -> None:
    assert cache.end_offset(requested, 42) == answer


def test_empty_cache_has_no_epochs(tmp_path: Path) -> None:
    assert EpochCache(Storage(), tmp_path).end_offset(0, 5) == (-1, -1)


@pytest.mark.parametrize(
    ("entry", "entries"),
    [
        ((7, 35), [(2, 10), (4, 20), (7, 30)]),
        ((7, 25), [(2, 10), (4, 20), (7, 25)]),
        ((8, 30), [(2, 10), (4, 20), (8, 30)]),
        ((8, 15), [(2, 10), (8, 15)]),
        ((3, 40), [(2, 10), (3, 40)]),
        ((1, 5), [(1, 5)]),
        ((-1, 50), [(2, 10), (4, 20), (7, 30)]),
    ],
)
def test_new_entry_removes_conflicting_entries(
    cache: EpochCache, tmp_path: Path, entry: tuple[int, int], entries: list[tuple[int, int]]
) -> None:
    cache.assign(*entry)
    assert cache.entries == entries
    assert EpochCache(Storage(), tmp_path).entries == entries


@pytest.mark.parametrize(
    ("end", "entries"),
    [(31, [(2, 10), (4, 20), (7, 30)]), (30, [(2, 10), (4, 20)]), (15, [(2, 10)]), (10, [])],
)
def test_truncation_from_the_end_removes_later_epochs(
    cache: EpochCache, tmp_path: Path, end: int, entries: list[tuple[int, int]]
) -> None:
    cache.truncate_from_end(end)
    assert cache.entries == EpochCache(Storage(), tmp_path).entries == entries


@pytest.mark.parametrize(
    ("start", "entries"),
    [
        (5, [(2, 10), (4, 20), (7, 30)]),
        (10, [(2, 10), (4, 20), (7, 30)]),
        (15, [(2, 15), (4, 20), (7, 30)]),
        (20, [(4, 20), (7, 30)]),
        (99, [(7, 99)]),
    ],
)
def test_truncation_from_the_start_removes_earlier_epochs(
    cache: EpochCache, start: int, entries: list[tuple[int, int]]
) -> None:
    cache.truncate_from_start(start)
    assert cache.entries == entries


def test_epoch_file_has_kafkas_format(cache: EpochCache, tmp_path: Path) -> None:
    assert (tmp_path / LEADER_EPOCHS).read_text() == "0\n3\n2 10\n4 20\n7 30\n"


def test_new_epoch_overwrites_the_file_in_place(cache: EpochCache, tmp_path: Path) -> None:
    inode = (tmp_path / LEADER_EPOCHS).stat().st_ino
    cache.assign(12, 31)
    assert (tmp_path / LEADER_EPOCHS).stat().st_ino == inode
    cache.assign(13, 5)  # contradicts all others: a shorter file may not be written over a longer
    assert (tmp_path / LEADER_EPOCHS).read_text() == "0\n1\n13 5\n"


@pytest.mark.parametrize("content", ["", "0\n2\n0 0\n", "0\n2\n0 0\n3 4", "garbage", None])
def test_damaged_or_missing_epoch_file_is_rebuilt_from_the_log(
    tmp_path: Path, content: str | None
) -> None:
    log = open_log(tmp_path)
    for epoch in (0, 0, 3, 3, 5):
        append(log, batch([b"a", b"b"]), epoch=epoch)
    log.close()
    path = tmp_path / LEADER_EPOCHS
    path.unlink() if content is None else path.write_text(content)
    assert open_log(tmp_path).epochs.entries == [(0, 0), (3, 4), (5, 8)]


def test_log_updates_epochs_with_every_change(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.assign_epoch_start(0, 0)
    append(log, batch([b"a", b"b"]), epoch=0)
    log.assign_epoch_start(1, 2)
    assert (log.latest_epoch, log.epoch_end_offset(0), log.epoch_end_offset(1)) == (
        1,
        (0, 2),
        (1, 2),
    )
    append(log, batch([b"c"]), epoch=1)
    log.truncate_to(2)
    assert log.epochs.entries == [(0, 0)]
    log.truncate_fully_and_start_at(9)
    assert log.latest_epoch == -1


def test_epochs_below_a_lowered_log_start_are_restored(tmp_path: Path) -> None:
    """The start is in a checkpoint once a minute, the epochs are written at once. Without
    them a follower with other records below that start would not be found diverging."""
    log = open_log(tmp_path)
    for epoch in (0, 1, 1, 3):
        append(log, batch(), epoch)
    log.update_high_watermark(4)
    log.increment_log_start_offset(3)
    assert log.epochs.entries == [(3, 3)]
    again = open_log(tmp_path)
    assert again.log_start_offset == 0
    assert again.epochs.entries == [(0, 0), (1, 1), (3, 3)]
    assert again.epoch_end_offset(0) == (0, 1)
