"""Keys and values of `__transaction_state`, in Apache Kafka's own format.

Source: TransactionLogKey and TransactionLogValue of Kafka 3.9's core. Each is preceded by its
version as an int16. With ZooKeeper there are no features, so that version 0 is written; version 1,
the flexible one, is read.
"""

from __future__ import annotations

import struct as binary
from collections.abc import Sequence

from urteil.broker.transactions.transaction import TxnMetadata, TxnState
from urteil.broker.wire.schema import Message, Struct, field, record, struct

KEY_VERSION = 0
VALUE_VERSION = 0
_VERSION = binary.Struct(">h")


@record("0")
class TransactionLogKey(Message):
    transactional_id: str = field("string", "0+")


@record("0-1", flexible="1+")
class TransactionLogValue(Message):
    @struct
    class PartitionsSchema(Struct):
        topic: str = field("string", "0+")
        partition_ids: Sequence[int] = field("[]int32", "0+")

    producer_id: int = field("int64", "0+")
    producer_epoch: int = field("int16", "0+")
    transaction_timeout_ms: int = field("int32", "0+")
    transaction_status: int = field("int8", "0+")
    transaction_partitions: Sequence[TransactionLogValue.PartitionsSchema] | None = field(
        "[]PartitionsSchema", "0+", nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = field("int64", "0+")
    transaction_start_timestamp_ms: int = field("int64", "0+")


def encode_key(transactional_id: str) -> bytes:
    key = TransactionLogKey(transactional_id=transactional_id)
    return _VERSION.pack(KEY_VERSION) + b"".join(key.encode(KEY_VERSION))


def decode_key(data: bytes | memoryview) -> str | None:
    """The transactional id; None for a key of an unknown version. Raises WireError."""
    (version,) = _VERSION.unpack_from(data)
    if version != KEY_VERSION:
        return None
    return TransactionLogKey.decode(version, data, _VERSION.size)[0].transactional_id


def encode_value(txn: TxnMetadata) -> bytes:
    """An empty transaction has no partitions at all (null), as in Kafka."""
    value = TransactionLogValue(
        producer_id=txn.producer_id,
        producer_epoch=txn.producer_epoch,
        transaction_timeout_ms=txn.timeout_ms,
        transaction_status=txn.state.value,
        transaction_partitions=None if txn.state is TxnState.EMPTY else _by_topic(txn),
        transaction_last_update_timestamp_ms=txn.updated_ms,
        transaction_start_timestamp_ms=txn.started_ms,
    )
    return _VERSION.pack(VALUE_VERSION) + b"".join(value.encode(VALUE_VERSION))


def _by_topic(txn: TxnMetadata) -> list[TransactionLogValue.PartitionsSchema]:
    return [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=partitions)
        for topic, partitions in txn.by_topic().items()
    ]


def decode_value(data: bytes | memoryview) -> TxnMetadata:
    """Raises WireError, and ValueError for an unknown state."""
    (version,) = _VERSION.unpack_from(data)
    value = TransactionLogValue.decode(version, data, _VERSION.size)[0]
    return TxnMetadata(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=TxnState(value.transaction_status),
        partitions=frozenset(
            (topic_partitions.topic, partition)
            for topic_partitions in value.transaction_partitions or ()
            for partition in topic_partitions.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
    )
