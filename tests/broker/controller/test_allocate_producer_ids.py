"""Blocks of producer ids, as the controller gives them to any kind of broker."""

from __future__ import annotations

from tests.broker.controller.controller_nodes import nodes, run
from tests.broker.zookeeper.server import ZooKeeperServer
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def test_producer_id_blocks_require_a_registered_broker(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, 1, 2) as cluster:
            active = await cluster.active()
            other = cluster[3 - active.id]

            async def ask(broker: int, epoch: int) -> AllocateProducerIdsResponse:
                request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch)
                return await active.controller.allocate_producer_ids(request)

            for start in (0, 1000):
                answer = await ask(other.id, other.registration.epoch)
                assert answer.error_code == ErrorCode.NONE
                assert (answer.producer_id_start, answer.producer_id_len) == (start, 1000)
            stale = await ask(other.id, other.registration.epoch - 1)
            assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
            assert (await ask(7, 1)).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
            request = AllocateProducerIdsRequest(broker_id=active.id, broker_epoch=1)
            refused = await other.controller.allocate_producer_ids(request)
            assert refused.error_code == ErrorCode.NOT_CONTROLLER

    run(scenario)
