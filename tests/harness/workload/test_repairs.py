"""What the lab mends of its clients."""

from __future__ import annotations

import pytest
from kafka.errors import NodeNotReadyError, UnknownBrokerIdError
from kafka.net.compat import KafkaNetClient

from urteil.harness.workload.repairs import look_again

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
