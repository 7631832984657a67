"""Verification of transactions before their first append (KIP-890)."""

from __future__ import annotations

from pathlib import Path

from tests.broker.log.helpers import NOW_MS, close_logs, open_log
from urteil.broker.log.log_results import AppendResult
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.transaction_verification import Guard
from urteil.broker.transactions.marker_sender import Marker
from urteil.broker.transactions.marker_writer import marker_batch
from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.errors import ErrorCode

ID, EPOCH = 9, 2


def append(log: PartitionLog, sequence: int, guard: Guard | None) -> AppendResult:
    batch = build_batch(
        [(None, b"v", (), NOW_MS)],
        producer_id=ID,
        producer_epoch=EPOCH,
        base_sequence=sequence,
        transactional=True,
    )
    return log.append_as_leader(memoryview(batch), 0, NOW_MS, guard=guard)


def end(log: PartitionLog) -> None:
    marker = Marker(producer_id=ID, producer_epoch=EPOCH, commit=False, coordinator_epoch=0)
    data = memoryview(marker_batch(marker, NOW_MS))
    assert log.append_as_leader(data, 0, NOW_MS, from_client=False).error is ErrorCode.NONE


def test_only_the_first_batch_of_a_transaction_needs_a_guard(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert append(log, 0, None).error is ErrorCode.INVALID_TXN_STATE
    guard = log.verifications.start(ID, EPOCH, 0, NOW_MS)
    assert append(log, 0, Guard()).error is ErrorCode.INVALID_TXN_STATE
    assert append(log, 0, guard).error is ErrorCode.NONE
    assert append(log, 1, None).error is ErrorCode.NONE
    close_logs(log)


def test_end_marker_invalidates_the_guard(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    guard = log.verifications.start(ID, EPOCH, 0, NOW_MS)
    end(log)
    assert append(log, 0, guard).error is ErrorCode.INVALID_TXN_STATE
    again = log.verifications.start(ID, EPOCH, 0, NOW_MS)
    assert append(log, 0, again).error is ErrorCode.NONE
    close_logs(log)


def test_later_batch_does_not_overtake_a_batch_being_verified(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    guard = log.verifications.start(ID, EPOCH, 0, NOW_MS)
    assert log.verifications.start(ID, EPOCH, 1, NOW_MS) is guard
    assert append(log, 1, guard).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, 0, guard).error is ErrorCode.NONE
    assert append(log, 1, guard).error is ErrorCode.NONE
    close_logs(log)


def test_unused_verifications_expire(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    guard = log.verifications.start(ID, EPOCH, 0, NOW_MS)
    expires_ms = NOW_MS + log.config.producer_id_expiration_ms
    log.expire_producers(expires_ms - 1)
    assert log.verifications.is_valid(ID, guard)
    log.expire_producers(expires_ms)
    assert not log.verifications.is_valid(ID, guard)
    close_logs(log)
