"""Frames and primitive types of Kafka's protocol, packed and read byte by byte."""

from __future__ import annotations

import struct


def encode_string(value: str) -> bytes:
    """A string with a length of 16 bits."""
    return struct.pack(">h", len(value.encode())) + value.encode()


def encode_request(api: tuple[int, int], correlation: int, body: bytes) -> bytes:
    """A complete frame with a request header of version 1."""
    content = struct.pack(">hhi", *api, correlation) + encode_string("probe") + body
    return struct.pack(">i", len(content)) + content


def encode_compact_string(value: str) -> bytes:
    """A compact string of fewer than 127 bytes."""
    encoded = value.encode()
    return bytes([len(encoded) + 1]) + encoded


class ResponseReader:
    """Reads the fields of a response in order. struct.error if the response is too short."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._at = 4

    def read(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._frame, self._at)
        self._at += struct.calcsize(layout)
        return int(value)

    def read_string(self) -> str:
        length = self.read(">h")
        if length < 0:
            return ""
        self._at += length
        return self._frame[self._at - length : self._at].decode()

    def read_compact_string(self) -> str:
        """A compact string of fewer than 127 bytes."""
        length = self.read(">B") - 1
        self._at += length
        return self._frame[self._at - length : self._at].decode()

    def read_bytes(self) -> bytes:
        """Bytes with a length of 32 bits."""
        length = max(self.read(">i"), 0)
        self.skip(length)
        return self._frame[self._at - length : self._at]

    def skip(self, count: int) -> None:
        self._at += count

    def read_int_array(self) -> list[int]:
        """An array of int32, such as broker ids."""
        return [self.read(">i") for _ in range(self.read(">i"))]
