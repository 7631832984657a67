"""The protocol of a socket while its connection waits to be served."""

from __future__ import annotations

import asyncio


class UnreadInput(asyncio.Protocol):
    """Keeps the bytes that arrive before reading stops: one chunk of the socket's, or two."""

    def __init__(self, transport: asyncio.Transport, above: asyncio.Protocol) -> None:
        self._transport = transport
        self._above = above
        self._early = bytearray()
        transport.set_protocol(self)
        transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self._early += data
        self._transport.pause_reading()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._above.connection_lost(exc)

    def release(self) -> bytes:
        """Return the socket to its connection, and the bytes that arrived meanwhile."""
        self._transport.set_protocol(self._above)
        self._transport.resume_reading()
        return bytes(self._early)
