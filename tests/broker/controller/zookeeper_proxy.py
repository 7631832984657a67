"""A TCP proxy before ZooKeeper that can drop answers of writes that were applied."""

from __future__ import annotations

import asyncio
import contextlib

WRITES = {1, 2, 5, 14, 15}  # create, delete, setData, multi, create2


class AnswerDroppingProxy:
    """Forwards 127.0.0.1:`port` to the server's port."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.armed = False  # drop from the next write on
        self.dropping = False
        self.dropped = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Break every connection and forward again from the next one on."""
        self.dropping = False
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def stop(self) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        self._writers |= {writer, up_writer}
        for coroutine in (
            self._requests(reader, up_writer),
            self._answers(up_reader, writer),
        ):
            task = asyncio.create_task(coroutine)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readexactly(4)
                frame = await reader.readexactly(int.from_bytes(head, "big"))
                if self.armed and int.from_bytes(frame[4:8], "big") in WRITES:
                    self.armed, self.dropping = False, True
                writer.write(head + frame)
        writer.close()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                if self.dropping:
                    self.dropped += 1
                else:
                    writer.write(data)
        writer.close()
