"""Controlled shutdown, asked of whoever is controller."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.broker.net.raw import run
from urteil.broker.controller.client import ControllerClient
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.wire.messages import ControlledShutdownResponse, UpdateMetadataRequest

RETRIES = 3


def alive(*brokers: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=1,
        live_brokers=[UpdateMetadataRequest.UpdateMetadataBroker(id=broker) for broker in brokers],
    )


class Stubborn:
    """The broker's own controller, which finds nobody to take over."""

    is_active = True

    def __init__(self) -> None:
        self.asked = 0

    async def controlled_shutdown(self, _: object) -> ControlledShutdownResponse:
        self.asked += 1
        left = ControlledShutdownResponse.RemainingPartition(topic_name="t", partition_index=0)
        return ControlledShutdownResponse(remaining_partitions=[left])


def client(backoff_ms: int) -> tuple[ControllerClient, Stubborn, MetadataCache]:
    config: Any = SimpleNamespace(
        broker_id=1,
        controlled_shutdown_max_retries=RETRIES,
        controlled_shutdown_retry_backoff_ms=backoff_ms,
    )
    controller, metadata, none = Stubborn(), MetadataCache(), None
    controlling: Any = controller
    channels: Any = none
    return ControllerClient(config, controlling, channels, metadata), controller, metadata


def test_last_broker_leaves_after_one_controlled_shutdown() -> None:
    async def scenario() -> None:
        shell, controller, metadata = client(60_000)
        metadata.update(alive(1))
        async with asyncio.timeout(5):
            assert not await shell.shut_down(lambda: 7)
        assert controller.asked == 1

    run(scenario())


def test_wait_for_a_removed_broker_ends() -> None:
    async def scenario() -> None:
        shell, controller, metadata = client(60_000)
        metadata.update(alive(1, 2))
        going = asyncio.ensure_future(shell.shut_down(lambda: 7))
        await asyncio.sleep(0.05)
        assert not going.done()
        metadata.update(alive(1))
        async with asyncio.timeout(5):
            assert not await going
        assert controller.asked == 1

    run(scenario())


def test_request_is_retried_until_the_broker_answers() -> None:
    async def scenario() -> None:
        shell, controller, metadata = client(1)
        metadata.update(alive(1, 2))
        async with asyncio.timeout(5):
            assert not await shell.shut_down(lambda: 7)
        assert controller.asked == RETRIES

    run(scenario())
