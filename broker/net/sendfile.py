"""Answers that hold parts of files: the kernel copies those to the socket, Python never does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from urteil.broker.log.storage import FileRange


def holds_files(buffers: Iterable[Any]) -> bool:
    """Whether a part of the answer still lies in a file."""
    return any(type(one) is FileRange for one in buffers)


async def send_through(
    transport: asyncio.Transport, buffers: Iterable[Any], drained: Callable[[], Awaitable[None]]
) -> None:
    """All of them in order by the transport itself, which encrypts: files are read a piece at a
    time, each when `drained` says that the peer took what came before. Raises as `Outlet.send`."""
    for one in buffers:
        if type(one) is not FileRange:
            transport.write(one)
            continue
        done = 0
        while done < len(one):
            piece = one.read(done)
            if not piece:
                raise ConnectionAbortedError("the log was cut while it was sent")
            transport.write(piece)
            done += len(piece)
            await drained()
            await asyncio.sleep(0)


class Outlet:
    """Writes to a transport's socket directly; nothing may wait in the transport meanwhile.

    It has a descriptor of its own, since a loop does not let others watch a transport's.
    `on_progress` is called whenever the peer took something.
    """

    def __init__(self, transport: asyncio.Transport, on_progress: Callable[[], None]) -> None:
        self._on_progress = on_progress
        self._fd = os.dup(transport.get_extra_info("socket").fileno())
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Outlet:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    async def send(self, buffers: Iterable[Any]) -> None:
        """All of them in order. Raises ConnectionError, also for a file that was cut meanwhile:
        the answer cannot be finished then; OSError when a file cannot be read."""
        for one in buffers:
            done = 0
            while done < len(one):
                try:
                    if type(one) is FileRange:
                        count = one.send(self._fd, done)
                    else:
                        count = os.write(self._fd, memoryview(one)[done:])
                except BlockingIOError:
                    await self._writable()
                    continue
                if count == 0:
                    raise ConnectionAbortedError("the log was cut while it was sent")
                done += count
                self._on_progress()
                await asyncio.sleep(0)  # a fast reader shall not keep the others waiting

    async def _writable(self) -> None:
        ready = self._loop.create_future()
        self._loop.add_writer(self._fd, _note, ready)
        try:
            await ready
        finally:
            self._loop.remove_writer(self._fd)


def _note(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
