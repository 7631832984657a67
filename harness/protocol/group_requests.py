"""Requests of the only member of a group: JoinGroup 2, SyncGroup 1, Heartbeat 1, OffsetFetch 7.

OffsetFetch 7 is the first version that can require stable offsets (KIP-447).
"""

from __future__ import annotations

import struct

from urteil.harness.protocol.framing import ResponseReader, encode_compact_string, encode_string
from urteil.harness.protocol.transaction_requests import STABLE_OFFSETS, encode_request

JOIN, SYNC, HEARTBEAT = (11, 2), (14, 1), (12, 1)
SESSION_MS, REBALANCE_MS = 60_000, 5_000
PROTOCOL_TYPE, PROTOCOL = "consumer", "range"


def join_request(group: str, member_id: str, metadata: bytes = b"") -> bytes:
    """JoinGroup 2 of the only member. Without a member id the broker assigns one; with the leader's
    id a new generation begins. `wanted` is the encoded subscription."""
    times = struct.pack(">ii", SESSION_MS, REBALANCE_MS)
    protocols = (
        struct.pack(">i", 1) + encode_string(PROTOCOL) + struct.pack(">i", len(metadata)) + metadata
    )
    return encode_request(
        JOIN,
        encode_string(group)
        + times
        + encode_string(member_id)
        + encode_string(PROTOCOL_TYPE)
        + protocols,
    )


def read_join(answer: bytes) -> tuple[int, str]:
    """Generation and member id."""
    response = ResponseReader(answer)
    response.read(">i")
    response.read(">h")
    generation = response.read(">i")
    response.read_string()
    response.read_string()
    return generation, response.read_string()


def sync_request(
    group: str, generation: int, member_id: str, assignment: bytes | None = None
) -> bytes:
    """SyncGroup 1 of the leader, which assigns all partitions to itself; without an assignment, of
    a member that requests its own assignment again."""
    assignments = struct.pack(">i", 0)
    if assignment is not None:
        assignments = struct.pack(">i", 1) + encode_string(member_id)
        assignments += struct.pack(">i", len(assignment)) + assignment
    return encode_request(
        SYNC,
        encode_string(group)
        + struct.pack(">i", generation)
        + encode_string(member_id)
        + assignments,
    )


def read_sync(answer: bytes) -> bytes:
    """The encoded assignment."""
    response = ResponseReader(answer)
    response.read(">i")
    response.read(">h")
    return response.read_bytes()


def stable_offset_request(group: str, topic: str, partition: int) -> bytes:
    """OffsetFetch 7 of one partition, for a stable offset. Names have fewer than 127 bytes."""
    place = b"\x02" + encode_compact_string(topic) + b"\x02" + struct.pack(">i", partition)
    return encode_request(
        STABLE_OFFSETS, b"\0" + encode_compact_string(group) + place + b"\0\x01\0"
    )


def read_stable_offset(answer: bytes, topic: str) -> int | None:
    """The committed offset; None if there is none."""
    at = 4 + 1 + 4 + 1 + len(encode_compact_string(topic)) + 1 + 4
    (offset,) = struct.unpack_from(">q", answer, at)
    return None if offset < 0 else int(offset)


def encode_subscription(topic: str) -> bytes:
    """A consumer's subscription to one topic (version 0, without user data)."""
    return struct.pack(">hi", 0, 1) + encode_string(topic) + struct.pack(">i", -1)


def heartbeat_request(group: str, generation: int, member_id: str) -> bytes:
    return encode_request(
        HEARTBEAT, encode_string(group) + struct.pack(">i", generation) + encode_string(member_id)
    )


def read_heartbeat(answer: bytes) -> int:
    """The error code."""
    response = ResponseReader(answer)
    response.read(">i")
    return response.read(">h")


def encode_assignment(topic: str, partition: int) -> bytes:
    """A consumer's assignment of one partition (version 0, without user data)."""
    return struct.pack(">hi", 0, 1) + encode_string(topic) + struct.pack(">iii", 1, partition, -1)
