"""Ends another client's ZooKeeper session, as its expiry would: by its id and password.

A password is derived from the id alone (`ZooKeeperServer.generatePasswd`: sixteen bytes of a
java.util.Random seeded by the id xor a constant), so it can be computed. The messages are
`ConnectRequest` and `closeSession` of `zookeeper.jute`.
"""

from __future__ import annotations

import socket
import struct

SECRET = 0xB3415C00
MULTIPLIER, MASK = 0x5DEECE66D, (1 << 48) - 1
UNSIGNED = (1 << 64) - 1
CLOSE_SESSION = -11
TIMEOUT_MS = 10_000
_CONNECT = struct.Struct(">iqiqi16s?")
_CONNECTED = struct.Struct(">iiq")


class SessionGone(Exception):
    """The server does not have the session (any more)."""


def password(session: int) -> bytes:
    """The password of a session, by its id (signed, as ZooKeeper prints it)."""
    state = ((session ^ SECRET) ^ MULTIPLIER) & MASK
    words = []
    for _ in range(4):
        state = (state * MULTIPLIER + 0xB) & MASK
        words.append(struct.pack("<I", state >> 16 & 0xFFFFFFFF))
    return b"".join(words)


def end_session(address: tuple[str, int], session: int, *, timeout_s: float) -> None:
    """Take over the session and close it: its ephemeral nodes disappear, and its owner receives an
    expiry. The owner reconnects at once and resumes the session, so both requests are sent
    together. Repeat until the nodes have disappeared. Raises SessionGone if the session has ended,
    OSError without an answer."""
    connect = _CONNECT.pack(0, 0, TIMEOUT_MS, session, 16, password(session), False)
    close = struct.pack(">ii", 1, CLOSE_SESSION)
    with socket.create_connection(address, timeout=timeout_s) as connection:
        connection.sendall(_frame(connect) + _frame(close))
        head = _read(connection, 4 + _CONNECTED.size)
        _version, timeout_ms, session_id = _CONNECTED.unpack_from(head, 4)
        if not timeout_ms or not session_id:
            raise SessionGone(f"session {session & UNSIGNED:#x} is gone")
        while connection.recv(1024):  # the server closes once the session is closed
            pass


def _frame(message: bytes) -> bytes:
    return struct.pack(">i", len(message)) + message


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ConnectionError("the server closed the connection")
        data += chunk
    return data
