"""The states of a transactional id: which step may follow which, and who may ask for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urteil.broker.transactions.records import decode_key, decode_value, encode_key, encode_value
from urteil.broker.transactions.transaction import (
    LAST_EPOCH,
    Transaction,
    TxnMetadata,
    TxnState,
)
from urteil.broker.wire.errors import ErrorCode

NOW_MS = 1_700_000_000_000
ID = 7
PARTS = frozenset({("a", 0), ("a", 2), ("b", 1)})


def txn(state: TxnState = TxnState.EMPTY, epoch: int = 3, **more: object) -> Transaction:
    is_open = state in (TxnState.ONGOING, TxnState.PREPARE_ABORT, TxnState.PREPARE_COMMIT)
    metadata = TxnMetadata(
        producer_id=ID,
        producer_epoch=epoch,
        timeout_ms=1000,
        state=state,
        partitions=PARTS if is_open else frozenset(),
        started_ms=NOW_MS if is_open else -1,
        updated_ms=NOW_MS,
    )
    return Transaction(replace(metadata, **more))  # type: ignore[arg-type]


def step_of(step: TxnMetadata | ErrorCode) -> TxnMetadata:
    assert isinstance(step, TxnMetadata)
    return step


def store(transaction: Transaction, step: TxnMetadata | ErrorCode) -> TxnMetadata:
    transaction.begin(step_of(step))
    transaction.replay(step_of(step))
    return transaction.now


@pytest.mark.parametrize(("expected", "epoch"), [(None, 4), (3, 4), (2, ErrorCode.PRODUCER_FENCED)])
def test_producer_epoch_increases_by_one(expected: int | None, epoch: int | ErrorCode) -> None:
    step = txn().initialise(expected, 2000, NOW_MS, None)
    assert (step if isinstance(step, ErrorCode) else step.producer_epoch) == epoch


def test_the_first_epoch_is_0() -> None:
    assert step_of(txn(epoch=-1).initialise(None, 2000, NOW_MS, None)).producer_epoch == 0


def test_repeated_init_after_a_lost_answer_succeeds() -> None:
    """KIP-360: the client that asked with epoch 3 gets 4 again; nobody else does."""
    transaction = txn()
    assert store(transaction, transaction.initialise(3, 2000, NOW_MS, None)).producer_epoch == 4
    assert store(transaction, transaction.initialise(3, 2000, NOW_MS, None)).producer_epoch == 4
    assert transaction.initialise(2, 2000, NOW_MS, None) is ErrorCode.PRODUCER_FENCED


def test_an_exhausted_id_is_replaced() -> None:
    transaction = txn(epoch=LAST_EPOCH - 1)
    assert transaction.needs_new_id(None)
    assert transaction.needs_new_id(LAST_EPOCH - 1)
    assert not transaction.needs_new_id(5)
    now = store(transaction, transaction.initialise(None, 2000, NOW_MS, 99))
    assert (now.producer_id, now.producer_epoch, now.previous_producer_id) == (99, 0, ID)
    assert transaction.may_continue(ID, LAST_EPOCH - 1)  # its own request again
    assert not transaction.may_continue(ID, 5)
    assert not transaction.may_continue(4711, 0)


def test_first_partition_starts_the_transaction_timeout() -> None:
    transaction = txn()
    store(transaction, transaction.add(frozenset({("a", 0)}), NOW_MS))
    now = store(transaction, transaction.add(frozenset({("b", 0)}), NOW_MS + 5))
    assert now.partitions == {("a", 0), ("b", 0)}
    assert (now.started_ms, now.updated_ms, now.state) == (NOW_MS, NOW_MS + 5, TxnState.ONGOING)
    assert transaction.add(frozenset({("a", 0)}), NOW_MS + 9) is ErrorCode.NONE


ENDS = [
    (TxnState.EMPTY, True, ErrorCode.INVALID_TXN_STATE),
    (TxnState.EMPTY, False, ErrorCode.INVALID_TXN_STATE),
    (TxnState.ONGOING, True, TxnState.PREPARE_COMMIT),
    (TxnState.ONGOING, False, TxnState.PREPARE_ABORT),
    (TxnState.PREPARE_COMMIT, True, ErrorCode.CONCURRENT_TRANSACTIONS),
    (TxnState.PREPARE_COMMIT, False, ErrorCode.INVALID_TXN_STATE),
    (TxnState.PREPARE_ABORT, True, ErrorCode.INVALID_TXN_STATE),
    (TxnState.PREPARE_ABORT, False, ErrorCode.CONCURRENT_TRANSACTIONS),
    (TxnState.COMPLETE_COMMIT, True, ErrorCode.NONE),
    (TxnState.COMPLETE_COMMIT, False, ErrorCode.INVALID_TXN_STATE),
    (TxnState.COMPLETE_ABORT, True, ErrorCode.INVALID_TXN_STATE),
    (TxnState.COMPLETE_ABORT, False, ErrorCode.NONE),
]


@pytest.mark.parametrize(("state", "commit", "expected"), ENDS)
def test_ends(state: TxnState, commit: bool, expected: TxnState | ErrorCode) -> None:
    step = txn(state).end(ID, 3, commit=commit, by_client=True, now_ms=NOW_MS)
    assert (step if isinstance(step, ErrorCode) else step.state) is expected


@pytest.mark.parametrize(
    ("producer", "epoch", "error"),
    [
        (ID + 1, 3, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ID, 2, ErrorCode.PRODUCER_FENCED),
        (ID, 4, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_only_the_producer_of_the_epoch_may_end(
    producer: int, epoch: int, error: ErrorCode
) -> None:
    transaction = txn(TxnState.ONGOING)
    assert transaction.check(producer, epoch) is error
    assert transaction.end(producer, epoch, commit=True, by_client=True, now_ms=NOW_MS) is error


def test_step_does_not_begin_while_another_is_pending() -> None:
    transaction = txn(TxnState.ONGOING)
    transaction.begin(step_of(transaction.add(frozenset({("z", 0)}), NOW_MS)))
    concurrent = ErrorCode.CONCURRENT_TRANSACTIONS
    assert transaction.add(frozenset({("y", 0)}), NOW_MS) is concurrent
    assert transaction.end(ID, 3, commit=True, by_client=True, now_ms=NOW_MS) is concurrent
    transaction.drop()
    assert transaction.now.partitions == PARTS


def test_fence_aborts_in_a_new_epoch() -> None:
    transaction = txn(TxnState.ONGOING)
    fence = transaction.fence()
    transaction.begin(fence)
    step = step_of(transaction.end(ID, 4, commit=False, by_client=False, now_ms=NOW_MS))
    assert (step.state, step.producer_epoch) == (TxnState.PREPARE_ABORT, 4)
    store(transaction, step)
    assert transaction.check(ID, 3) is ErrorCode.PRODUCER_FENCED
    assert store(transaction, transaction.complete(NOW_MS)).state is TxnState.COMPLETE_ABORT
    assert transaction.now.partitions == frozenset()


def test_failed_fence_bumps_the_epoch_once() -> None:
    transaction = txn(TxnState.ONGOING)
    transaction.begin(transaction.fence())
    transaction.begin(step_of(transaction.end(ID, 4, commit=False, by_client=False, now_ms=NOW_MS)))
    transaction.drop()
    transaction.fence_failed = True
    assert transaction.fence().producer_epoch == 4


def test_steps_out_of_order_raise() -> None:
    with pytest.raises(RuntimeError, match="CompleteCommit cannot follow"):
        txn(TxnState.ONGOING).begin(replace(txn().now, state=TxnState.COMPLETE_COMMIT))


def test_overdue_and_expired() -> None:
    assert not txn(TxnState.ONGOING).is_overdue(NOW_MS + 1000)
    assert txn(TxnState.ONGOING).is_overdue(NOW_MS + 1001)
    assert not txn().is_overdue(NOW_MS + 5000)
    assert txn().is_expired(NOW_MS + 60, 60)
    assert not txn().is_expired(NOW_MS + 59, 60)
    assert not txn(TxnState.ONGOING).is_expired(NOW_MS + 60, 60)


def test_kafkas_names() -> None:
    assert TxnState.PREPARE_EPOCH_FENCE.title == "PrepareEpochFence"
    assert TxnState.COMPLETE_ABORT.title == "CompleteAbort"


def test_record_layout_matches_kafka() -> None:
    """A transaction of `t` on a-0, a-2 and b-1, by TransactionLogKey and TransactionLogValue 0."""
    assert encode_key("t") == bytes.fromhex("0000 0001 74")
    assert encode_value(txn(TxnState.ONGOING).now) == bytes.fromhex(
        "0000 0000000000000007 0003 000003e8 01"
        "00000002 0001 61 00000002 00000000 00000002 0001 62 00000001 00000001"
        "0000018bcfe56800 0000018bcfe56800"
    )
    assert encode_value(txn().now)[17:21] == b"\xff\xff\xff\xff"


STATES = [state for state in TxnState if state is not TxnState.PREPARE_EPOCH_FENCE]


@given(
    state=st.sampled_from(STATES),
    partitions=st.frozensets(st.tuples(st.text(max_size=5), st.integers(0, 9))),
    transactional_id=st.text(max_size=20),
)
def test_records_round_trip(
    state: TxnState, partitions: frozenset[tuple[str, int]], transactional_id: str
) -> None:
    known = partitions if state is not TxnState.EMPTY else frozenset()
    metadata = txn(state, partitions=known).now
    assert decode_value(encode_value(metadata)) == metadata
    assert decode_key(encode_key(transactional_id)) == transactional_id
