"""Responses with parts of files: the kernel copies those to the socket (sendfile)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from urteil.broker.log.storage import FileRange


def contains_files(buffers: Iterable[Any]) -> bool:
    """Whether a buffer is a range of a file."""
    return any(type(buffer) is FileRange for buffer in buffers)


async def send_by_transport(
    transport: asyncio.Transport, buffers: Iterable[Any], drained: Callable[[], Awaitable[None]]
) -> None:
    """Send all buffers by the transport, which encrypts them. Files are read in pieces, each after
    `drained` returned. Raises as `SocketWriter.send`."""
    for buffer in buffers:
        if type(buffer) is not FileRange:
            transport.write(buffer)
            continue
        done = 0
        while done < len(buffer):
            piece = buffer.read(done)
            if not piece:
                raise ConnectionAbortedError("the log was cut while it was sent")
            transport.write(piece)
            done += len(piece)
            await drained()
            await asyncio.sleep(0)


class SocketWriter:
    """Writes to a transport's socket directly; the transport must have nothing buffered.

    It duplicates the descriptor, because a loop does not let others watch a transport's own.
    `on_progress` is called whenever the peer has read bytes.
    """

    def __init__(self, transport: asyncio.Transport, on_progress: Callable[[], None]) -> None:
        self._on_progress = on_progress
        self._fd = os.dup(transport.get_extra_info("socket").fileno())
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> SocketWriter:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    async def send(self, buffers: Iterable[Any]) -> None:
        """Send all buffers in order. Raises ConnectionError, also for a file that was truncated
        meanwhile (the response cannot be completed), and OSError if a file cannot be read."""
        for buffer in buffers:
            done = 0
            while done < len(buffer):
                try:
                    if type(buffer) is FileRange:
                        count = buffer.send(self._fd, done)
                    else:
                        count = os.write(self._fd, memoryview(buffer)[done:])
                except BlockingIOError:
                    await self._writable()
                    continue
                if count == 0:
                    raise ConnectionAbortedError("the log was cut while it was sent")
                done += count
                self._on_progress()
                await asyncio.sleep(0)  # a fast reader must not delay the others

    async def _writable(self) -> None:
        ready = self._loop.create_future()
        self._loop.add_writer(self._fd, _set_ready, ready)
        try:
            await ready
        finally:
            self._loop.remove_writer(self._fd)


def _set_ready(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
