"""What the lab mends of its clients."""

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

from urteil.harness.clients.kafka_python_fixes import ask_for_all, fetch_again, look_again

NOBODY = 77


def test_a_leader_that_is_no_broker_makes_a_producer_ask_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = KafkaNetClient(bootstrap_servers="127.0.0.1:1")  # connected to nothing: no brokers
    asked: list[bool] = []
    monkeypatch.setattr(client._manager.cluster, "request_update", lambda: asked.append(True))
    with pytest.raises(UnknownBrokerIdError):
        client.maybe_connect(NOBODY)
    assert asked == []
    look_again(client._manager)
    client.maybe_connect(NOBODY)
    assert asked == [True]
    with pytest.raises(NodeNotReadyError):
        client._manager.get_connection(NOBODY)
    client.close()


def test_an_answer_that_lacks_a_partition_is_to_be_asked_for_again() -> None:
    class Unanswered:
        """The library's own way from the answers, of which there is none."""

        _net = SimpleNamespace(run=lambda *_: {})
        _fetch_offsets_by_times_async = None
        beginning_or_end_offset = Fetcher.beginning_or_end_offset

    fetcher: Any = Unanswered()
    slots = [TopicPartition("orders", 0)]
    with pytest.raises(KeyError):
        fetcher.beginning_or_end_offset(slots, -2)
    ask_for_all(fetcher)
    with pytest.raises(LeaderNotAvailableError, match="orders"):
        fetcher.beginning_or_end_offset(slots, -2)


def test_a_damaged_batch_is_let_go_of_and_told_with_its_place() -> None:
    """The library's own records, which are spent when they have failed once."""
    made = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1000)
    made.append(0, 1, None, b"value", [])
    batch = made.build()
    batch[-2] ^= 1
    slot = TopicPartition("orders", 0)
    part = Fetcher.PartitionRecords(0, slot, MemoryRecords(bytes(batch)))
    fetcher: Any = SimpleNamespace(_append=lambda _drained, part, most: len(part.take(most)))
    fetch_again(fetcher)
    with pytest.raises(CorruptRecordError) as told:
        fetcher._append({}, part, 1)
    assert told.value.args == (slot, 0)
    assert not part
