"""Connections to peers that come and go."""

from __future__ import annotations

import asyncio

import pytest

from tests.broker.server.raw import run
from urteil.broker.server.channels import Channels, Endpoint
from urteil.broker.server.hosts import Resolver
from urteil.broker.wire.messages import ApiVersionsRequest


def test_a_connection_made_to_a_broker_that_left_meanwhile_is_closed() -> None:
    async def scenario() -> None:
        ended = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.read(100):
                pass
            ended.set()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        channels = Channels("b1", Resolver())
        node = Endpoint(2, "127.0.0.1", port)
        asking = asyncio.ensure_future(channels.send(node, ApiVersionsRequest(), 0, 5_000))
        await asyncio.sleep(0)
        channels.forget(2)
        async with asyncio.timeout(2):
            with pytest.raises(ConnectionError):
                await asking
            await ended.wait()
        server.close()

    run(scenario())
