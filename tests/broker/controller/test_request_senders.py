"""What brokers are owed: requests in their order, until they leave."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.broker.controller.controller_nodes import run
from urteil.broker.controller.request_batch import Request
from urteil.broker.controller.request_senders import RequestSenders
from urteil.broker.net.channels import Endpoint
from urteil.broker.wire.messages import StopReplicaRequest, StopReplicaResponse
from urteil.broker.zookeeper.znodes import BrokerEndpoint, BrokerInfo


def at(port: int) -> BrokerInfo:
    endpoint = BrokerEndpoint(listener="PLAINTEXT", host="b1", port=port)
    return BrokerInfo(id=1, endpoints=(endpoint,), epoch=5)


class Network:
    """Port 1 never answers, others do."""

    def __init__(self) -> None:
        self.came: list[tuple[int, int]] = []

    async def send(
        self, node: Endpoint, msg: Any, version: int, timeout_ms: float, *, purpose: str = ""
    ) -> StopReplicaResponse:
        if node.port == 1:
            await asyncio.Event().wait()
        self.came.append((node.port, msg.controller_id))
        return StopReplicaResponse()


def test_unanswered_requests_survive_a_new_registration() -> None:
    """Under the same epoch it is the same broker, which never received StopReplica."""

    async def scenario() -> None:
        network, answered = Network(), []

        def note(_: int, request: Request, __: Any) -> None:
            answered.append(request.controller_id)

        senders = RequestSenders(network, "PLAINTEXT", 1000, note)
        senders.add(at(1))
        for number in (1, 2):
            senders.send(1, StopReplicaRequest(controller_id=number))
        await asyncio.sleep(0)
        senders.add(at(2))
        senders.send(1, StopReplicaRequest(controller_id=3))
        await senders.wait_for_answers(1)
        assert network.came == [(2, 1), (2, 2), (2, 3)]
        assert answered == [1, 2, 3]
        senders.remove(1)
        senders.add(at(3))
        await senders.wait_for_answers(1)
        assert answered == [1, 2, 3]
        senders.close()

    run(scenario)
