"""Producers in a log: sequences, epochs, duplicates, transactions, and their recovery."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.log.helpers import (
    NOW_MS,
    append,
    batch,
    end_txn,
    marker,
    open_log,
    read_all,
)
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import CheckpointedState
from urteil.broker.wire.batch_header import MAX_SEQUENCE
from urteil.broker.wire.errors import ErrorCode

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def send(log: PartitionLog, sequence: int, *, count: int = 1, epoch: int = 0) -> ErrorCode:
    data = batch([b"v"] * count, producer=(9, epoch, sequence))
    return log.append_as_leader(data, 0, NOW_MS).error


def test_last_five_batches_are_recognised_as_duplicates(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(0, 14, 2):
        assert send(log, sequence, count=2) is ErrorCode.NONE
    for sequence in range(4, 14, 2):
        result = log.append_as_leader(batch([b"v", b"v"], producer=(9, 0, sequence)), 0, NOW_MS)
        assert result.duplicate
        assert (result.error, result.base_offset, result.last_offset) == (
            ErrorCode.NONE,
            sequence,
            sequence + 1,
        )
    assert send(log, 2, count=2) is OUT_OF_ORDER
    assert send(log, 12, count=1) is OUT_OF_ORDER
    assert log.log_end_offset == 14


@pytest.mark.parametrize(
    ("epoch", "sequence", "error"),
    [
        (1, 3, ErrorCode.NONE),
        (1, 4, OUT_OF_ORDER),
        (1, 1, OUT_OF_ORDER),
        (0, 3, ErrorCode.INVALID_PRODUCER_EPOCH),
        (2, 0, ErrorCode.NONE),
        (2, 3, OUT_OF_ORDER),
    ],
)
def test_next_sequence_and_epoch_are_checked(
    tmp_path: Path, epoch: int, sequence: int, error: ErrorCode
) -> None:
    log = open_log(tmp_path)
    assert send(log, 0, count=3, epoch=1) is ErrorCode.NONE
    assert send(log, sequence, epoch=epoch) is error
    assert log.log_end_offset == (4 if error is ErrorCode.NONE else 3)


def test_unknown_producer_may_begin_with_any_sequence(tmp_path: Path) -> None:
    assert send(open_log(tmp_path), 1234) is ErrorCode.NONE


def test_sequences_wrap_to_zero(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert send(log, MAX_SEQUENCE - 1, count=4) is ErrorCode.NONE
    assert log.producers.entries[9].last_sequence == 1
    assert log.append_as_leader(
        batch([b"v"] * 4, producer=(9, 0, MAX_SEQUENCE - 1)), 0, NOW_MS
    ).duplicate
    assert send(log, 2, count=1) is ErrorCode.NONE


def test_sequence_after_the_largest_is_zero(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert send(log, MAX_SEQUENCE) is ErrorCode.NONE
    assert send(log, 0) is ErrorCode.NONE


def test_follower_accepts_any_sequence_of_the_leader(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for base_offset, sequence in [(0, 0), (1, 5), (2, 2)]:
        data = batch(producer=(9, 0, sequence), base_offset=base_offset)
        assert log.append_as_follower(data, NOW_MS).error is ErrorCode.NONE
    assert send(log, 3) is ErrorCode.NONE


@pytest.mark.parametrize("clean", [True, False])
def test_producer_state_survives_a_restart(tmp_path: Path, clean: bool) -> None:
    config = LogConfig(segment_bytes=300)
    log = open_log(tmp_path, config=config)
    for sequence in range(10):
        assert send(log, sequence) is ErrorCode.NONE
    if clean:
        log.close()
    again = open_log(tmp_path, config=config, remembered=CheckpointedState(clean=clean))
    assert again.append_as_leader(batch(producer=(9, 0, 9)), 0, NOW_MS).duplicate
    assert send(again, 11) is OUT_OF_ORDER
    assert send(again, 10) is ErrorCode.NONE


@pytest.mark.parametrize("clean", [True, False])
def test_producers_with_old_timestamps_survive_a_restart(tmp_path: Path, clean: bool) -> None:
    """Timestamps may be old: a retry that spans the restart must not be written twice."""
    config = LogConfig(producer_id_expiration_ms=1000)
    log = open_log(tmp_path, config=config)
    old = batch(producer=(9, 0, 0), timestamp_ms=NOW_MS - 5000)
    assert log.append_as_leader(old, 0, NOW_MS).error is ErrorCode.NONE
    if clean:
        log.close()
    again = open_log(tmp_path, config=config, remembered=CheckpointedState(clean=clean))
    assert again.append_as_leader(old, 0, NOW_MS).duplicate


def test_truncation_restores_earlier_producer_state(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(segment_bytes=300))
    for sequence in range(20):
        assert send(log, sequence) is ErrorCode.NONE
    log.truncate_to(7)
    assert log.producers.entries[9].last_sequence == 6
    assert send(log, 8) is OUT_OF_ORDER
    assert send(log, 7) is ErrorCode.NONE
    log.truncate_fully_and_start_at(3)
    assert log.producers.entries == {}


def test_damaged_snapshots_are_ignored(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=300)
    log = open_log(tmp_path, config=config)
    for sequence in range(20):
        assert send(log, sequence) is ErrorCode.NONE
    log.close()
    damaged = sorted(tmp_path.glob("*.snapshot"))[2:]
    for number, path in enumerate(damaged):
        path.write_bytes(path.read_bytes()[: 5 + 10 * number] if number % 2 else b"\0" * 56)
    again = open_log(tmp_path, config=config, remembered=CheckpointedState(clean=True))
    assert again.producers.entries[9].last_sequence == 19
    assert len(again.producers.entries[9].batches) == 5


def test_producers_expire_except_in_a_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(producer_id_expiration_ms=1000))
    append(log, batch(producer=(1, 0, 0)))
    append(log, batch(producer=(2, 0, 0), timestamp_ms=NOW_MS + 500))
    append(log, batch(producer=(3, 0, 0), transactional=True))
    log.expire_producers(NOW_MS + 999)
    assert set(log.producers.entries) == {1, 2, 3}
    log.expire_producers(NOW_MS + 1000)
    assert set(log.producers.entries) == {2, 3}


def test_last_stable_offset_waits_for_replicated_markers(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log)
    append(log, batch(producer=(1, 0, 0), transactional=True))
    append(log, batch(producer=(2, 0, 0), transactional=True))
    log.update_high_watermark(3)
    assert log.last_stable_offset == 1
    end_txn(log, 1, commit=True)
    assert log.last_stable_offset == 1  # the marker is not replicated yet
    log.update_high_watermark(4)
    assert log.last_stable_offset == 2
    end_txn(log, 2, commit=False)
    log.update_high_watermark(5)
    assert log.last_stable_offset == 5


def test_non_transactional_write_in_a_transaction_is_rejected(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(producer=(1, 0, 0), transactional=True))
    assert log.append_as_leader(batch(producer=(1, 0, 1)), 0, NOW_MS).error is (
        ErrorCode.INVALID_TXN_STATE
    )
    assert log.append_as_leader(batch(producer=(1, 0, 1), transactional=True), 0, NOW_MS).error is (
        ErrorCode.NONE
    )


def test_marker_of_an_older_coordinator_epoch_is_rejected(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(producer=(1, 3, 0), transactional=True))
    old_epoch = marker(1, 2, commit=True, coordinator_epoch=5)
    assert log.append_as_leader(old_epoch, 0, NOW_MS, from_client=False).error is (
        ErrorCode.INVALID_PRODUCER_EPOCH
    )
    end_txn_at_5 = marker(1, 3, commit=True, coordinator_epoch=5)
    assert not log.append_as_leader(end_txn_at_5, 0, NOW_MS, from_client=False).error
    zombie = marker(1, 3, commit=False, coordinator_epoch=4)
    assert log.append_as_leader(zombie, 0, NOW_MS, from_client=False).error is (
        ErrorCode.TRANSACTION_COORDINATOR_FENCED
    )


def test_marker_with_a_newer_epoch_resets_sequences(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch([b"a", b"b"], producer=(1, 0, 0), transactional=True))
    end_txn(log, 1, epoch=1, commit=False)
    zombie = log.append_as_leader(batch(producer=(1, 0, 2), transactional=True), 0, NOW_MS)
    assert zombie.error is ErrorCode.INVALID_PRODUCER_EPOCH
    append(log, batch(producer=(1, 1, 0), transactional=True))


def _run_transactions(log: PartitionLog) -> None:
    for round_number in range(6):
        for producer_id in (1, 2):
            data = batch(
                [b"x"] * 2, producer=(producer_id, 0, 2 * round_number), transactional=True
            )
            append(log, data)
        end_txn(log, 1, commit=round_number % 2 == 0)
        end_txn(log, 2, commit=round_number % 3 == 0)


@pytest.mark.parametrize("restart", [None, True, False])
def test_aborted_transactions_are_found_by_range(tmp_path: Path, restart: bool | None) -> None:
    config = LogConfig(segment_bytes=500)
    log = open_log(tmp_path, config=config)
    _run_transactions(log)
    if restart is not None:
        if restart:
            log.close()
        log = open_log(tmp_path, config=config, remembered=CheckpointedState(clean=restart))
    # every round: two batches of two, two markers
    expected = [
        (producer_id, 6 * number + 2 * (producer_id - 1), 6 * number + 3 + producer_id)
        for number in range(6)
        for producer_id, commit in ((1, number % 2 == 0), (2, number % 3 == 0))
        if not commit
    ]
    assert len(log.segments) > 3
    for begin, end in [(0, 36), (0, 7), (8, 20), (13, 14), (30, 36), (36, 36)]:
        txns = [
            (txn.producer_id, txn.first_offset, txn.last_offset)
            for txn in log.aborted_transactions(begin, end)
        ]
        overlapping = [txn for txn in expected if txn[2] >= begin and txn[1] < end]
        assert [txn for txn in txns if txn in overlapping] == overlapping
        assert txns == overlapping
    log.truncate_to(20)
    assert [txn.last_offset for txn in log.aborted_transactions(0, 99)] == [
        last for _, _, last in expected if last < 20
    ]


def test_open_transaction_stays_open_after_a_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, batch(producer=(1, 0, 0), transactional=True))
    append(log)
    log.close()
    for clean in (True, False):
        again = open_log(tmp_path, remembered=CheckpointedState(clean=clean))
        again.update_high_watermark(2)
        assert again.last_stable_offset == 0
    assert len(read_all(again)) == 2


def test_batch_around_the_log_start_is_known_after_a_truncation(tmp_path: Path) -> None:
    """DeleteRecords may leave a part of a batch: its transaction is open, its retry a duplicate."""
    log = open_log(tmp_path)
    sent = batch([b"a", b"b"], producer=(1, 0, 0), transactional=True)
    append(log, sent)
    append(log)
    log.update_high_watermark(2)
    assert log.increment_log_start_offset(1) is ErrorCode.NONE
    log.truncate_to(2)
    assert log.last_stable_offset == 1
    assert append(log, sent).duplicate
    end_txn(log, 1, commit=False)
    assert [txn.first_offset for txn in log.aborted_transactions(1, 2)] == [0]


def test_follower_append_of_several_batches_keeps_stable_offsets(tmp_path: Path) -> None:
    """A follower appends at once what the leader appended batch by batch; each offset then has the
    same aborted transactions on both."""
    folders = [tmp_path / name for name in ("leader", "follower")]
    for folder in folders:
        folder.mkdir()
    leader, follower = (open_log(folder) for folder in folders)
    append(leader, batch(producer=(1, 0, 0), transactional=True))
    end_txn(leader, 1, commit=False)
    append(leader, batch(producer=(1, 0, 1), transactional=True))
    append(leader, batch(producer=(2, 0, 0), transactional=True))
    end_txn(leader, 1, commit=False)
    append(leader)
    run = memoryview(b"".join(leader.read(0, 1 << 20, upto=6).records))
    assert follower.append_as_follower(run, NOW_MS).error is ErrorCode.NONE
    assert follower.aborted_transactions(0, 6) == leader.aborted_transactions(0, 6)
    for begin in range(6):
        txns = follower.aborted_transactions(begin, begin + 1)
        first_offsets = [txn.first_offset for txn in txns]
        assert first_offsets == [
            first for first, last in ((0, 1), (2, 4)) if first <= begin <= last
        ]


def test_truncated_aborts_leave_a_consistent_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else the next start after a clean stop would find damage, and delete the snapshots."""
    log = open_log(tmp_path)
    append(log, batch([b"a", b"b"], producer=(1, 0, 0), transactional=True))
    end_txn(log, 1, commit=False)
    log.truncate_to(2)
    log.update_high_watermark(2)
    append(log)
    log.update_high_watermark(3)
    log.increment_log_start_offset(2)
    log.close()
    remembered = CheckpointedState(clean=True, log_start_offset=2)
    again = open_log(tmp_path, remembered=remembered)
    assert caplog.messages == []
    again.update_high_watermark(3)
    assert again.producers.is_open(1)
