"""A socket server with the real registry of handlers but no cluster, and raw clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

from tests.ports import free_port
from urteil.broker.api.dispatch import Dispatcher
from urteil.broker.api.registry import load_handlers
from urteil.broker.base.offload import Offload
from urteil.broker.broker import Broker
from urteil.broker.config.listeners import Listener
from urteil.broker.net.connection import Answer
from urteil.broker.net.host_names import Resolver
from urteil.broker.net.socket_server import SocketServer


@contextlib.asynccontextmanager
async def serving(
    answer: Answer | None = None, *, max_frame_bytes: int = 1 << 20, max_idle_ms: int = 0
) -> AsyncIterator[tuple[int, SocketServer]]:
    """Serve on a free port; by default with the dispatcher (of ApiVersions alone)."""
    load_handlers()
    dispatcher = Dispatcher(
        cast(Broker, SimpleNamespace(throttle=SimpleNamespace(is_active=False), offload=Offload()))
    )
    port = free_port()
    server = SocketServer(
        max_frame_bytes=max_frame_bytes,
        max_idle_ms=max_idle_ms,
        backlog=50,
        answer=answer or dispatcher.answer,
    )
    listener = Listener("PLAINTEXT", "127.0.0.1", port, "127.0.0.1", port, "PLAINTEXT")
    await server.listen((listener,), Resolver())
    try:
        yield port, server
    finally:
        await server.close()


async def talk(port: int, data: bytes) -> bytes:
    """Send bytes, close the sending side, and read until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), 60)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def exchange(port: int, frame: bytes) -> bytes:
    """Send a frame and read a response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(frame)
        size = int.from_bytes(await asyncio.wait_for(reader.readexactly(4), 60), "big")
        return await asyncio.wait_for(reader.readexactly(size), 60)
    finally:
        writer.close()


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def run(coroutine: Any) -> None:
    """On uvloop, as in production."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(coroutine)
