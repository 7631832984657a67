"""Requests that any Kafka node or ZooKeeper server answers at once: a response proves that the link
works."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass

from urteil.chaos.observations import Link, Probe

API_VERSIONS, METADATA, CORRELATION_ID, CLIENT_ID = 18, 3, 7, b"urteil-probe"
LARGEST_RESPONSE = 1 << 20
SRVR_PREFIX = b"Zookeeper version"


def probe_broker(address: str, port: int, *, timeout_s: float) -> float:
    """The round trip of an ApiVersions request (version 0) in ms. OSError without a response.

    Source: Kafka protocol guide, request header version 1 and response header version 0.
    """
    begin = time.monotonic()
    answer = _exchange(address, port, API_VERSIONS, 0, b"", timeout_s)
    if len(answer) < 6:
        raise ConnectionError("the response is not one to ApiVersions")
    return (time.monotonic() - begin) * 1000


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """The cluster in one broker's Metadata response; `controller` is -1 if it is unknown."""

    brokers: frozenset[int]
    controller: int


def fetch_metadata(address: str, port: int, *, timeout_s: float) -> ClusterMetadata:
    """Send Metadata (version 1, no topic) to a broker. OSError without a response."""
    answer = _exchange(address, port, METADATA, 1, struct.pack(">i", 0), timeout_s)
    try:
        (count,) = struct.unpack_from(">i", answer)
        at, brokers = 4, []
        for _ in range(count):
            brokers.append(struct.unpack_from(">i", answer, at)[0])
            at = _after_string(answer, _after_string(answer, at + 4) + 4)
        return ClusterMetadata(frozenset(brokers), struct.unpack_from(">i", answer, at)[0])
    except struct.error as error:
        raise ConnectionError(f"the response is not one to Metadata: {error}") from None


def _after_string(data: bytes, at: int) -> int:
    """The position after a nullable string."""
    return at + 2 + max(0, int(struct.unpack_from(">h", data, at)[0]))


def _exchange(
    address: str, port: int, key: int, version: int, body: bytes, timeout_s: float
) -> bytes:
    """Send one request. Returns the body of the response; OSError without one."""
    head = struct.pack(">hhih", key, version, CORRELATION_ID, len(CLIENT_ID)) + CLIENT_ID
    deadline = time.monotonic() + timeout_s
    with _connect(address, port, timeout_s) as connection:
        connection.sendall(struct.pack(">i", len(head + body)) + head + body)
        size, correlation_id = struct.unpack(">ii", _read(connection, 8, deadline))
        if correlation_id != CORRELATION_ID or not 4 <= size <= LARGEST_RESPONSE:
            raise ConnectionError(f"a response of {size} bytes to request {correlation_id}")
        return _read(connection, size - 4, deadline)


def probe_zookeeper(address: str, port: int, *, timeout_s: float) -> float:
    """The round trip of an `srvr` command in ms. OSError without a response.

    A server without a quorum responds too, with an error: see `zookeeper_serves`.
    """
    begin = time.monotonic()
    _srvr(address, port, timeout_s)
    return (time.monotonic() - begin) * 1000


def zookeeper_serves(address: str, port: int, *, timeout_s: float) -> bool:
    """Whether a server responds and has a quorum (or is standalone)."""
    try:
        return _srvr(address, port, timeout_s) == SRVR_PREFIX
    except OSError:
        return False


def zookeeper_leads(address: str, port: int, *, timeout_s: float) -> bool:
    """Whether a server is leader or standalone."""
    try:
        with _connect(address, port, timeout_s) as connection:
            connection.sendall(b"srvr")
            answer = b"".join(iter(lambda: connection.recv(LARGEST_RESPONSE), b""))
    except OSError:
        return False
    return answer.partition(b"Mode: ")[2].split(b"\n")[0] in (b"leader", b"standalone")


def _srvr(address: str, port: int, timeout_s: float) -> bytes:
    deadline = time.monotonic() + timeout_s
    with _connect(address, port, timeout_s) as connection:
        connection.sendall(b"srvr")
        return _read(connection, len(SRVR_PREFIX), deadline)


def probe(link: Link, address: str, port: int, *, is_kafka: bool, timeout_s: float) -> Probe:
    """Send one request to `address`. Without a response, `detail` holds the reason."""
    send = probe_broker if is_kafka else probe_zookeeper
    try:
        rtt_ms = send(address, port, timeout_s=timeout_s)
    except OSError as error:
        reason = "timed out" if isinstance(error, TimeoutError) else str(error)
        detail = f"{link}: no response within {timeout_s:g} s ({reason})"
        return Probe(link=link, answered=False, rtt_ms=None, detail=detail)
    detail = f"{link}: answered in {rtt_ms:.1f} ms"
    return Probe(link=link, answered=True, rtt_ms=rtt_ms, detail=detail)


def _connect(address: str, port: int, timeout_s: float) -> socket.socket:
    connection = socket.create_connection((address, port), timeout=timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _read(connection: socket.socket, size: int, deadline: float) -> bytes:
    data = b""
    while len(data) < size:
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("timed out")
        connection.settimeout(remaining_s)
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise ConnectionError("closed without a response")
        data += chunk
    return data
