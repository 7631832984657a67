"""Measures a connection through a link: throughput, pieces, and how it ends.

A transfer sends many ApiVersions requests to a broker, or one `mntr` command to a ZooKeeper server.
Both answer at once and at length, without a trace in the cluster.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from urteil.chaos.link_probes import API_VERSIONS
from urteil.chaos.observations import Link, Transfer

MONITOR = b"mntr"
BAD_FRAME = b"\xff\xff\xff\xff"
"""An invalid frame size: brokers close the connection."""
SMALLEST_REQUEST, LARGEST_REQUEST = 25, 30_000
LARGEST_FRAME = 1 << 20
HEAD_BYTES = 14


def framed_request(size: int) -> bytes:
    """An ApiVersions request (version 0) of this size; the client id fills it up."""
    size = min(max(size, SMALLEST_REQUEST), LARGEST_REQUEST)
    name = b"u" * (size - HEAD_BYTES)
    return struct.pack(">ihhih", size - 4, API_VERSIONS, 0, 1, len(name)) + name


@dataclass(slots=True)
class _Reader:
    """Counts the data of one connection until a deadline."""

    connection: socket.socket
    deadline: float
    last: float
    data: bytearray = field(default_factory=bytearray)
    answers: int = 0
    pieces: int = 0
    largest: int = 0
    _at: int = 0

    def read(self) -> bool:
        """Read one piece. False at the end of the connection; OSError as sockets raise it."""
        remaining_s = self.deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("timed out")
        self.connection.settimeout(remaining_s)
        piece = self.connection.recv(1 << 16)
        if piece:
            self.data += piece
            self.pieces += 1
            self.largest = max(self.largest, len(piece))
            self.last = time.monotonic()
        return bool(piece)

    def read_answer(self) -> bool:
        """Read until one more frame is complete. False if the connection ends before."""
        while not self._frame():
            if not self.read():
                return False
        return True

    def _frame(self) -> bool:
        if self._at + 4 > len(self.data):
            return False
        (size,) = struct.unpack_from(">i", self.data, self._at)
        if not 0 <= size <= LARGEST_FRAME or self._at + 4 + size > len(self.data):
            return False
        self._at += 4 + size
        self.answers += 1
        return True

    def read_to_end(self, began: float) -> float:
        """The milliseconds until the connection ended, from `began` or the last piece."""
        while self.read():
            began = time.monotonic()
        return (time.monotonic() - began) * 1000


def transfer(
    link: Link,
    address: str,
    port: int,
    *,
    requests: Sequence[bytes],
    framed: bool,
    timeout_s: float,
    last: bytes = b"",
) -> Transfer:
    """Send the requests, count the responses, then end the connection and wait for its end.

    Each of `requests` may hold several frames, with one response each. A protocol that is not
    `framed` closes by itself; otherwise `last` or this side ends the connection.
    """
    began = time.monotonic()
    ended, closing_ms = "closed", None
    with socket.socket() as connection:
        reader = _Reader(connection, began + timeout_s, began)
        try:
            connection.settimeout(timeout_s)
            connection.connect((address, port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if _send_all(reader, requests, framed):
                closing_ms = _close(reader, framed, last)
                ended = "answered"
        except TimeoutError:
            ended = "timed out"
        except ConnectionRefusedError:
            ended = "refused"
        except OSError:
            ended = "reset"
    return Transfer(
        link=link,
        ended=ended,
        received_bytes=len(reader.data),
        answers=reader.answers if framed else int(bool(reader.data)),
        pieces=reader.pieces,
        largest_piece_bytes=reader.largest,
        seconds=reader.last - began,
        closing_ms=closing_ms,
    )


def _send_all(reader: _Reader, requests: Sequence[bytes], framed: bool) -> bool:
    """Whether every request was answered before the connection ended."""
    for request in requests:
        reader.connection.sendall(request)
        for _ in range(_frames(request) if framed else 0):
            if not reader.read_answer():
                return False
    return True


def _frames(request: bytes) -> int:
    return len(request) // (4 + int(struct.unpack_from(">i", request)[0]))


def _close(reader: _Reader, framed: bool, last: bytes) -> float:
    began = time.monotonic()  # the other side may close before this thread continues
    if last:
        reader.connection.sendall(last)
    elif framed:
        reader.connection.shutdown(socket.SHUT_WR)
    return reader.read_to_end(began)
