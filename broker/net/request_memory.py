"""`queued.max.request.bytes`: how much all requests together may hold that wait or are answered."""

from __future__ import annotations

from typing import Any

from urteil.broker.net.connection import Connection


class RequestMemory:
    """While `limit_bytes` are held, no connection begins to read another request.

    A request counts whole from its size on. One that is all that a connection has is read to its
    end, so that what is held can be given back: a connection may go beyond by one request, and by
    what came with it.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._waiting: dict[MeteredConnection, None] = {}
        self.held_bytes = 0

    @property
    def is_full(self) -> bool:
        return self.held_bytes >= self._limit_bytes

    def add(self, count: int) -> None:
        """Or give back, below 0."""
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
    """A connection that counts what it holds; there is one only where there is a limit."""

    __slots__ = ("_answered_bytes", "_held_bytes", "_is_lost", "_memory")

    def __init__(self, memory: RequestMemory, *args: Any) -> None:
        self._memory = memory
        self._held_bytes = self._answered_bytes = 0
        self._is_lost = False
        super().__init__(*args)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._count()
        if self._memory.is_full and not self._must_go_on() and self._transport is not None:
            self._transport.pause_reading()
            self._memory.wait(self)

    def _must_go_on(self) -> bool:
        """What was begun is all there is here: only its end gives anything back."""
        return self._is_within_a_frame() and not self._frames and not self._answered_bytes

    def resume(self) -> None:
        """There is room again."""
        if self._transport is not None and not self._paused:
            self._transport.resume_reading()

    async def _next_frame(self) -> memoryview:
        self._answered_bytes = 0
        self._count()
        if self._must_go_on():
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
