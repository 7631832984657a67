"""Connections to brokers that leave and return."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from tests.broker.net.raw import run
from tests.ports import free_port
from urteil.broker.net.channels import Channels, Endpoint
from urteil.broker.net.host_names import Resolver
from urteil.broker.wire.messages import ApiVersionsRequest


def test_connection_to_a_broker_that_left_is_closed() -> None:
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
        async with asyncio.timeout(20):
            with pytest.raises(ConnectionError):
                await asking
            await ended.wait()
        server.close()

    run(scenario())


def test_cancelled_requests_do_not_prevent_a_connection() -> None:
    """Each request times out before the next connect, and there is always one."""

    async def scenario() -> None:
        port = free_port()
        channels, node = Channels("b1", Resolver()), Endpoint(2, "127.0.0.1", port)

        async def ask(patience_ms: int) -> None:
            await channels.send(node, ApiVersionsRequest(), 0, patience_ms)

        async def impatient() -> None:
            while True:
                with contextlib.suppress(OSError):
                    await ask(400)

        async with asyncio.timeout(20):
            while True:  # until the pause between connects is longer than their patience
                began_s = time.monotonic()
                with pytest.raises(ConnectionError):
                    await ask(20_000)
                if time.monotonic() - began_s > 0.9:
                    break
            asking = [asyncio.ensure_future(impatient()) for _ in range(5)]
            connected = asyncio.Event()
            server = await asyncio.start_server(lambda *_: connected.set(), "127.0.0.1", port)
            await connected.wait()
        for task in asking:
            task.cancel()
        server.close()
        channels.close()

    run(scenario())
