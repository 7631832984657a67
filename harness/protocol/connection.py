"""A connection to one broker that carries raw requests."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence


class Wire:
    """One connection; every call has the request's timeout."""

    def __init__(self, address: str, timeout_s: float) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s)

    def ask(self, frame: bytes) -> bytes:
        """The answer without its size. OSError when the broker closes or says nothing in time."""
        return self.ask_all([frame])[0]

    def ask_all(self, frames: Sequence[bytes]) -> list[bytes]:
        """All frames at once, then their answers, which come in order."""
        self._socket.sendall(b"".join(frames))
        return [self._answer() for _ in frames]

    def _answer(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, size: int) -> bytes:
        got = b""
        while len(got) < size:
            part = self._socket.recv(size - len(got))
            if not part:
                raise ConnectionError("closed by the broker")
            got += part
        return got

    def close(self) -> None:
        self._socket.close()
