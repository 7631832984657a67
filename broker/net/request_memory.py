"""`queued.max.request.bytes`: a limit on the memory of all waiting and running requests."""

from __future__ import annotations

from typing import Any

from urteil.broker.net.connection import Connection


class RequestMemory:
    """While the limit is reached, no connection begins to read another request.

    A request counts in full once its size is known. A connection always reads its only request to
    the end, so that its memory can be released: each connection may exceed the limit by one request
    and the bytes that arrived with it.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._waiting: dict[MeteredConnection, None] = {}
        self.held_bytes = 0

    @property
    def is_full(self) -> bool:
        return self.held_bytes >= self._limit_bytes

    def add(self, count: int) -> None:
        """Add bytes; a negative count releases them."""
        self.held_bytes += count
        while self._waiting and not self.is_full:
            first = next(iter(self._waiting))
            del self._waiting[first]
            first.resume()

    def wait(self, connection: MeteredConnection) -> None:
        self._waiting[connection] = None

    def forget(self, connection: MeteredConnection) -> None:
        self._waiting.pop(connection, None)


class MeteredConnection(Connection):
    """A connection that counts its memory; used only with a limit."""

    __slots__ = ("_answered_bytes", "_held_bytes", "_is_lost", "_memory")

    def __init__(self, memory: RequestMemory, *args: Any) -> None:
        self._memory = memory
        self._held_bytes = self._answered_bytes = 0
        self._is_lost = False
        super().__init__(*args)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._count()
        if self._memory.is_full and not self._is_sole_request() and self._transport is not None:
            self._transport.pause_reading()
            self._memory.wait(self)

    def _is_sole_request(self) -> bool:
        """Whether the begun request is the only one here: only its end releases memory."""
        return self._is_within_a_frame() and not self._frames and not self._answered_bytes

    def resume(self) -> None:
        """Memory is available again."""
        if self._transport is not None and not self._paused:
            self._transport.resume_reading()

    async def _next_frame(self) -> memoryview:
        self._answered_bytes = 0
        self._count()
        if self._is_sole_request():
            self._memory.forget(self)
            self.resume()
        frame = await super()._next_frame()
        self._answered_bytes = len(frame)
        return frame

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._is_lost = True
        self._memory.forget(self)
        self._count()

    def _is_within_a_frame(self) -> bool:
        return self._partial is not None and len(self._partial) >= 4

    def _count(self) -> None:
        now = 0
        if not self._is_lost:
            begun = self._need if self._is_within_a_frame() else 0
            now = begun + self._answered_bytes + sum(map(len, self._frames))
        change, self._held_bytes = now - self._held_bytes, now
        self._memory.add(change)
