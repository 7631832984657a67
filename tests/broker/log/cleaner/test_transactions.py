"""Markers, aborted records and last batches of producers over several cleanings."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.log.cleaner.helpers import COMPACTED, batches, clean, pairs, put
from tests.broker.log.helpers import NOW_MS, close_logs, open_log
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.txn_index import AbortedTxn

RETENTION_MS = COMPACTED.delete_retention_ms


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    log = open_log(tmp_path, config=COMPACTED)
    yield log
    close_logs(log)


def write(log: PartitionLog, key: bytes, *, producer: int, sequence: int = 0) -> int:
    return put(log, (key, b"of %d" % producer), producer_id=producer, producer_epoch=0,
               base_sequence=sequence, transactional=True)  # fmt: skip


def end(log: PartitionLog, producer: int, *, commit: bool) -> int:
    pair = (struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0))
    return put(log, pair, producer_id=producer, producer_epoch=0, transactional=True, control=True)


def clean_all(log: PartitionLog, now_ms: int) -> None:
    """Clean up to the end, which moves on by a batch of its own."""
    put(log, (b"filler", None))
    log.roll(NOW_MS)
    clean(log, now_ms)
    assert log.cleaned_to == log.log_end_offset


def markers(log: PartitionLog) -> list[int]:
    return [head.base_offset for head, _ in batches(log) if head.is_control and head.records_count]


def test_aborted_records_are_removed_at_once(log: PartitionLog) -> None:
    kept = put(log, (b"a", b"committed"))
    write(log, b"a", producer=5)
    last = write(log, b"b", producer=5, sequence=1)
    marker = end(log, 5, commit=False)
    clean_all(log, NOW_MS)
    assert [pair for pair in pairs(log) if pair[1] != b"filler"] == [(kept, b"a", b"committed")]
    empty = {head.base_offset: head for head, _ in batches(log)}[last]
    assert (empty.records_count, empty.last_sequence, empty.is_transactional) == (0, 1, True)
    assert log.aborted_transactions(0, 10) == [AbortedTxn(5, 1, marker, marker + 1)]
    assert markers(log) == [marker]


@pytest.mark.parametrize("commit", [True, False])
def test_marker_is_removed_after_delete_retention(log: PartitionLog, commit: bool) -> None:
    write(log, b"a", producer=5)
    marker = end(log, 5, commit=commit)
    write(log, b"a", producer=5, sequence=1)  # so that the first batch is not the last one
    newer = end(log, 5, commit=True)
    clean_all(log, NOW_MS)
    assert markers(log) == [marker, newer], "its records have just gone"
    clean_all(log, NOW_MS + 1)
    assert markers(log) == [marker, newer], "its time is set"
    horizon = {head.base_offset: head for head, _ in batches(log)}[marker]
    assert horizon.has_delete_horizon
    assert horizon.base_timestamp == NOW_MS + 1 + RETENTION_MS
    clean_all(log, NOW_MS + RETENTION_MS)
    assert markers(log) == [marker, newer]
    clean_all(log, NOW_MS + RETENTION_MS + 1)
    assert markers(log) == [newer], "a value of its transaction is still there"
    assert log.aborted_transactions(0, log.log_end_offset) == []


def test_two_transactions_of_one_producer_are_distinguished(log: PartitionLog) -> None:
    write(log, b"x", producer=5)
    end(log, 5, commit=False)
    kept = write(log, b"y", producer=5, sequence=1)
    end(log, 5, commit=True)
    write(log, b"z", producer=5, sequence=2)
    end(log, 5, commit=False)
    clean_all(log, NOW_MS)
    assert [offset for offset, key, _ in pairs(log) if key != b"filler"] == [kept]


def test_missing_marker_does_not_affect_later_transactions(log: PartitionLog) -> None:
    write(log, b"x", producer=5)
    log.segments.active_segment.txn_index.append(AbortedTxn(5, 0, 1, 2))
    end(log, 6, commit=True)  # where the marker of 5 should be
    log.producers.entries.clear()
    log.producers.reset(log.log_end_offset)
    kept = write(log, b"y", producer=5, sequence=1)
    end(log, 5, commit=True)
    clean_all(log, NOW_MS)
    assert kept in [offset for offset, _, _ in pairs(log)]


def test_only_marker_of_a_producer_stays(log: PartitionLog) -> None:
    end(log, 9, commit=False)
    for n in range(4):
        clean_all(log, NOW_MS + n * RETENTION_MS)
    kept = [head for head, _ in batches(log) if head.producer_id == 9]
    assert [head.is_control for head in kept] == [True]
