"""A connection to one broker that carries raw requests."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence


class Connection:
    """One connection. Every call has the same timeout."""

    def __init__(self, address: str, timeout_s: float) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s)

    def call(self, frame: bytes) -> bytes:
        """Send a frame and return the response without its size. OSError if the broker closes the
        connection or does not respond in time."""
        return self.call_all([frame])[0]

    def call_all(self, frames: Sequence[bytes]) -> list[bytes]:
        """Send all frames at once, then read their responses in order."""
        self._socket.sendall(b"".join(frames))
        return [self._read_response() for _ in frames]

    def _read_response(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                raise ConnectionError("closed by the broker")
            data += chunk
        return data

    def close(self) -> None:
        self._socket.close()
