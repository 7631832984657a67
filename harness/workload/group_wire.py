"""Requests of the only member of a group, packed byte by byte: JoinGroup 2, SyncGroup 1."""

from __future__ import annotations

import struct

from urteil.harness.workload.probe_wire import Answer
from urteil.harness.workload.txn_wire import frame, text

JOIN, SYNC = (11, 2), (14, 1)
SESSION_MS, REBALANCE_MS = 60_000, 5_000
PROTOCOL_TYPE, PROTOCOL = "consumer", "range"


def join_request(group: str, member_id: str) -> bytes:
    """As the only member: who has no id is given one, and who leads begins another generation."""
    times = struct.pack(">ii", SESSION_MS, REBALANCE_MS)
    protocols = struct.pack(">i", 1) + text(PROTOCOL) + struct.pack(">i", 0)
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


def sync_request(group: str, generation: int, member_id: str) -> bytes:
    """The leader's, who gives itself nothing that the coordinator would have to read."""
    mine = struct.pack(">i", 1) + text(member_id) + struct.pack(">i", 0)
    return frame(SYNC, text(group) + struct.pack(">i", generation) + text(member_id) + mine)
