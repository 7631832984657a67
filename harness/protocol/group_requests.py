"""Requests of the only member of a group, packed byte by byte: JoinGroup 2, SyncGroup 1,
Heartbeat 1, and OffsetFetch 7, the first that asks for stable positions alone (KIP-447)."""

from __future__ import annotations

import struct

from urteil.harness.protocol.framing import Answer
from urteil.harness.protocol.transaction_requests import STABLE_OFFSETS, compact, frame, text

JOIN, SYNC, HEARTBEAT = (11, 2), (14, 1), (12, 1)
SESSION_MS, REBALANCE_MS = 60_000, 5_000
PROTOCOL_TYPE, PROTOCOL = "consumer", "range"


def join_request(group: str, member_id: str, wanted: bytes = b"") -> bytes:
    """As the only member: who has no id is given one, and who leads begins another generation.
    `wanted` is what it subscribes to."""
    times = struct.pack(">ii", SESSION_MS, REBALANCE_MS)
    protocols = struct.pack(">i", 1) + text(PROTOCOL) + struct.pack(">i", len(wanted)) + wanted
    return frame(JOIN, text(group) + times + text(member_id) + text(PROTOCOL_TYPE) + protocols)


def read_join(answer: bytes) -> tuple[int, str]:
    """Generation and member id."""
    told = Answer(answer)
    told.take(">i")
    told.take(">h")
    generation = told.take(">i")
    told.text()
    told.text()
    return generation, told.text()


def sync_request(
    group: str, generation: int, member_id: str, assignment: bytes | None = None
) -> bytes:
    """The leader's, who gives itself all there is; without an assignment that of a member who asks
    for its own once more."""
    mine = struct.pack(">i", 0)
    if assignment is not None:
        mine = struct.pack(">i", 1) + text(member_id)
        mine += struct.pack(">i", len(assignment)) + assignment
    return frame(SYNC, text(group) + struct.pack(">i", generation) + text(member_id) + mine)


def read_sync(answer: bytes) -> bytes:
    """The assignment."""
    told = Answer(answer)
    told.take(">i")
    told.take(">h")
    return told.blob()


def stable_request(group: str, topic: str, partition: int) -> bytes:
    """Where a group stands in one partition, if nothing is under way that may change it. Names are
    short (`compact`)."""
    place = b"\x02" + compact(topic) + b"\x02" + struct.pack(">i", partition)
    return frame(STABLE_OFFSETS, b"\0" + compact(group) + place + b"\0\x01\0")


def read_stable(answer: bytes, topic: str) -> int | None:
    """The position; None where there is none."""
    at = 4 + 1 + 4 + 1 + len(compact(topic)) + 1 + 4
    (offset,) = struct.unpack_from(">q", answer, at)
    return None if offset < 0 else int(offset)


def subscription_to(topic: str) -> bytes:
    """One topic, as consumers tell their group (version 0, nothing of the user's)."""
    return struct.pack(">hi", 0, 1) + text(topic) + struct.pack(">i", -1)


def heartbeat_request(group: str, generation: int, member_id: str) -> bytes:
    return frame(HEARTBEAT, text(group) + struct.pack(">i", generation) + text(member_id))


def read_heartbeat(answer: bytes) -> int:
    """The error."""
    told = Answer(answer)
    told.take(">i")
    return told.take(">h")


def assignment_of(topic: str, partition: int) -> bytes:
    """One partition, as consumers write it (version 0, nothing of the user's)."""
    return struct.pack(">hi", 0, 1) + text(topic) + struct.pack(">iii", 1, partition, -1)
