"""Fixes of kafka-python."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.consumer.fetcher import Fetcher
from kafka.errors import (
    CorruptRecordError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    UnknownBrokerIdError,
)
from kafka.net.compat import KafkaNetClient
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords
from kafka.structs import TopicPartition

from urteil.harness.clients.kafka_python_fixes import (
    drop_corrupt_response,
    refresh_unknown_leader,
    retry_missing_partitions,
)

NO_BROKER = 77


def test_unknown_leader_triggers_a_metadata_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = KafkaNetClient(bootstrap_servers="127.0.0.1:1")  # connected to nothing: no brokers
    updates: list[bool] = []
    monkeypatch.setattr(client._manager.cluster, "request_update", lambda: updates.append(True))
    with pytest.raises(UnknownBrokerIdError):
        client.maybe_connect(NO_BROKER)
    assert updates == []
    refresh_unknown_leader(client._manager)
    client.maybe_connect(NO_BROKER)
    assert updates == [True]
    with pytest.raises(NodeNotReadyError):
        client._manager.get_connection(NO_BROKER)
    client.close()


def test_response_without_a_partition_is_retriable() -> None:
    class Unanswered:
        """The library's path for an empty response."""

        _net = SimpleNamespace(run=lambda *_: {})
        _fetch_offsets_by_times_async = None
        beginning_or_end_offset = Fetcher.beginning_or_end_offset

    fetcher: Any = Unanswered()
    slots = [TopicPartition("orders", 0)]
    with pytest.raises(KeyError):
        fetcher.beginning_or_end_offset(slots, -2)
    retry_missing_partitions(fetcher)
    with pytest.raises(LeaderNotAvailableError, match="orders"):
        fetcher.beginning_or_end_offset(slots, -2)


def test_corrupt_batch_is_dropped_and_reported_with_its_offset() -> None:
    """The library's records, which are exhausted after one failure."""
    made = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1000)
    made.append(0, 1, None, b"value", [])
    batch = made.build()
    batch[-2] ^= 1
    slot = TopicPartition("orders", 0)
    part = Fetcher.PartitionRecords(0, slot, MemoryRecords(bytes(batch)))
    fetcher: Any = SimpleNamespace(_append=lambda _drained, part, most: len(part.take(most)))
    drop_corrupt_response(fetcher)
    with pytest.raises(CorruptRecordError) as raised:
        fetcher._append({}, part, 1)
    assert raised.value.args == (slot, 0)
    assert not part
