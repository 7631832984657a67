"""Frames and primitive types of Kafka's protocol, packed and read byte by byte."""

from __future__ import annotations

import struct


def text(value: str) -> bytes:
    """A string of the protocol."""
    return struct.pack(">h", len(value.encode())) + value.encode()


def frame(api: tuple[int, int], correlation: int, body: bytes) -> bytes:
    """A whole frame with a header of version 1."""
    content = struct.pack(">hhi", *api, correlation) + text("probe") + body
    return struct.pack(">i", len(content)) + content


class Answer:
    """Reads an answer's fields; struct.error where it ends too early."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._at = 4

    def take(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._frame, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def text(self) -> str:
        length = self.take(">h")
        if length < 0:
            return ""
        self._at += length
        return self._frame[self._at - length : self._at].decode()

    def short(self) -> str:
        """A compact string of fewer than 127 bytes."""
        length = self.take(">B") - 1
        self._at += length
        return self._frame[self._at - length : self._at].decode()

    def blob(self) -> bytes:
        """An array of bytes."""
        length = max(self.take(">i"), 0)
        self.skip(length)
        return self._frame[self._at - length : self._at]

    def skip(self, count: int) -> None:
        self._at += count

    def ids(self) -> list[int]:
        """An array of broker ids."""
        return [self.take(">i") for _ in range(self.take(">i"))]
