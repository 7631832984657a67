"""What the lab mends of its clients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.consumer.fetcher import Fetcher
from kafka.errors import LeaderNotAvailableError, NodeNotReadyError, UnknownBrokerIdError
from kafka.net.compat import KafkaNetClient
from kafka.structs import TopicPartition

from urteil.harness.workload.repairs import ask_for_all, look_again

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
