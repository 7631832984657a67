"""More requests that nobody grants, packed byte by byte: those that change something, or that no
client sends. Each tells its error, and would change nothing that a run is about.

Of topics: DeleteTopics 1, CreatePartitions 0, ElectLeaders 0, OffsetForLeaderEpoch 0,
IncrementalAlterConfigs 0. Of groups: OffsetCommit 2, JoinGroup 0, SyncGroup 0,
LeaveGroup 0, OffsetDelete 0. Of transactional ids: AddPartitionsToTxn 0, AddOffsetsToTxn 0,
TxnOffsetCommit 0, EndTxn 0. Of the cluster: WriteTxnMarkers 0, ControlledShutdown 1.
"""

from __future__ import annotations

import struct

from urteil.harness.protocol.connection import Wire
from urteil.harness.protocol.framing import Answer, frame, text
from urteil.harness.protocol.unauthorized_requests import OF_TOPIC, ONE, TIMEOUT_MS

DELETE_TOPICS, CREATE_PARTITIONS, ELECT_LEADERS = (20, 1), (37, 0), (43, 0)
EPOCH_END, ALTER_CONFIGS = (23, 0), (44, 0)
OFFSET_COMMIT, JOIN, SYNC, LEAVE, OFFSET_DELETE = (8, 2), (11, 0), (14, 0), (13, 0), (47, 0)
ADD_PARTITIONS, ADD_OFFSETS, COMMIT_OFFSETS, END_TXN = (24, 0), (25, 0), (28, 0), (26, 0)
WRITE_MARKERS, CONTROLLED_SHUTDOWN = (27, 0), (7, 1)
NOBODYS_PRODUCER = struct.pack(">qh", 1 << 40, 0)
NO_BROKER = 1 << 20
SESSION_MS = 6_000
EMPTY, NONE = struct.pack(">i", 0), struct.pack(">i", -1)


def _error(wire: Wire, api: tuple[int, int], body: bytes, layout: str) -> int:
    """What stands behind numbers of these formats (`s`: a string) in the answer."""
    answer = Answer(wire.ask(frame(api, 1, body)))
    for one in layout:
        if one == "s":
            answer.text()
        else:
            answer.take(f">{one}")
    return answer.take(">h")


def delete_topic(wire: Wire, topic: str) -> int:
    body = ONE + text(topic) + struct.pack(">i", TIMEOUT_MS)
    return _error(wire, DELETE_TOPICS, body, "iis")


def create_partitions(wire: Wire, topic: str) -> int:
    """As a trial alone."""
    body = ONE + text(topic) + struct.pack(">i", 9) + NONE + struct.pack(">i?", TIMEOUT_MS, True)
    return _error(wire, CREATE_PARTITIONS, body, "iis")


def elect_leader(wire: Wire, topic: str) -> int:
    body = ONE + text(topic) + ONE + struct.pack(">ii", 0, TIMEOUT_MS)
    return _error(wire, ELECT_LEADERS, body, "iisii")


def epoch_end(wire: Wire, topic: str) -> int:
    return _error(wire, EPOCH_END, ONE + text(topic) + ONE + struct.pack(">ii", 0, 0), "isi")


def alter_configs(wire: Wire, topic: str) -> int:
    """As a trial alone."""
    body = ONE + struct.pack(">b", OF_TOPIC) + text(topic) + EMPTY + struct.pack(">?", True)
    return _error(wire, ALTER_CONFIGS, body, "ii")


def commit(wire: Wire, group: str) -> int:
    """A position of nobody's."""
    body = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">q", -1)
    body += ONE + text(group) + ONE + struct.pack(">iq", 0, 0) + text("")
    return _error(wire, OFFSET_COMMIT, body, "isii")


def join(wire: Wire, group: str) -> int:
    times = struct.pack(">i", SESSION_MS)
    protocols = ONE + text("range") + EMPTY
    body = text(group) + times + text("") + text("consumer") + protocols
    return _error(wire, JOIN, body, "")


def sync(wire: Wire, group: str) -> int:
    return _error(wire, SYNC, text(group) + ONE + text("nobody") + EMPTY, "")


def leave(wire: Wire, group: str) -> int:
    return _error(wire, LEAVE, text(group) + text("nobody"), "")


def delete_positions(wire: Wire, group: str) -> int:
    body = text(group) + ONE + text(group) + ONE + struct.pack(">i", 0)
    return _error(wire, OFFSET_DELETE, body, "")


def add_partition(wire: Wire, transactional_id: str) -> int:
    place = ONE + text(transactional_id) + ONE + struct.pack(">i", 0)
    return _error(wire, ADD_PARTITIONS, text(transactional_id) + NOBODYS_PRODUCER + place, "iisii")


def add_offsets(wire: Wire, transactional_id: str) -> int:
    body = text(transactional_id) + NOBODYS_PRODUCER + text(transactional_id)
    return _error(wire, ADD_OFFSETS, body, "i")


def commit_in_transaction(wire: Wire, transactional_id: str) -> int:
    body = text(transactional_id) + text(transactional_id) + NOBODYS_PRODUCER
    body += ONE + text(transactional_id) + ONE + struct.pack(">iq", 0, 0) + text("")
    return _error(wire, COMMIT_OFFSETS, body, "iisii")


def end_transaction(wire: Wire, transactional_id: str) -> int:
    body = text(transactional_id) + NOBODYS_PRODUCER + struct.pack(">?", False)
    return _error(wire, END_TXN, body, "i")


def write_marker(wire: Wire, topic: str) -> int:
    """Of nobody's transaction, in a topic that is not there."""
    body = ONE + NOBODYS_PRODUCER + struct.pack(">?", False)
    body += ONE + text(topic) + ONE + struct.pack(">ii", 0, 0)
    return _error(wire, WRITE_MARKERS, body, "iqisii")


def shut_down(wire: Wire) -> int:
    """A broker that is not there."""
    return _error(wire, CONTROLLED_SHUTDOWN, struct.pack(">i", NO_BROKER), "")
