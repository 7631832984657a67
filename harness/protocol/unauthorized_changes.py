"""Requests of users without permission that would change something, or that only brokers send.

Each function returns the error. Even if a broker executed the request, nothing that the run uses
would change.

Topics: DeleteTopics 1, CreatePartitions 0, ElectLeaders 0, OffsetForLeaderEpoch 0,
IncrementalAlterConfigs 0. Groups: OffsetCommit 2, JoinGroup 0, SyncGroup 0, LeaveGroup 0,
OffsetDelete 0. Transactional ids: AddPartitionsToTxn 0, AddOffsetsToTxn 0, TxnOffsetCommit 0,
EndTxn 0. Cluster: WriteTxnMarkers 0, ControlledShutdown 1.
"""

from __future__ import annotations

import struct

from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.framing import ResponseReader, encode_request, encode_string
from urteil.harness.protocol.unauthorized_requests import OF_TOPIC, ONE, TIMEOUT_MS

DELETE_TOPICS, CREATE_PARTITIONS, ELECT_LEADERS = (20, 1), (37, 0), (43, 0)
EPOCH_END, ALTER_CONFIGS = (23, 0), (44, 0)
OFFSET_COMMIT, JOIN, SYNC, LEAVE, OFFSET_DELETE = (8, 2), (11, 0), (14, 0), (13, 0), (47, 0)
ADD_PARTITIONS, ADD_OFFSETS, COMMIT_OFFSETS, END_TXN = (24, 0), (25, 0), (28, 0), (26, 0)
WRITE_MARKERS, CONTROLLED_SHUTDOWN = (27, 0), (7, 1)
UNKNOWN_PRODUCER = struct.pack(">qh", 1 << 40, 0)
NO_BROKER = 1 << 20
SESSION_MS = 6_000
EMPTY, NONE = struct.pack(">i", 0), struct.pack(">i", -1)


def _request_error(connection: Connection, api: tuple[int, int], body: bytes, layout: str) -> int:
    """Send a request. Returns the error code behind fields of this layout (`s`: a string)."""
    answer = ResponseReader(connection.call(encode_request(api, 1, body)))
    for letter in layout:
        if letter == "s":
            answer.read_string()
        else:
            answer.read(f">{letter}")
    return answer.read(">h")


def delete_topic(connection: Connection, topic: str) -> int:
    body = ONE + encode_string(topic) + struct.pack(">i", TIMEOUT_MS)
    return _request_error(connection, DELETE_TOPICS, body, "iis")


def create_partitions(connection: Connection, topic: str) -> int:
    """With validate_only."""
    body = (
        ONE
        + encode_string(topic)
        + struct.pack(">i", 9)
        + NONE
        + struct.pack(">i?", TIMEOUT_MS, True)
    )
    return _request_error(connection, CREATE_PARTITIONS, body, "iis")


def elect_leader(connection: Connection, topic: str) -> int:
    body = ONE + encode_string(topic) + ONE + struct.pack(">ii", 0, TIMEOUT_MS)
    return _request_error(connection, ELECT_LEADERS, body, "iisii")


def epoch_end(connection: Connection, topic: str) -> int:
    return _request_error(
        connection, EPOCH_END, ONE + encode_string(topic) + ONE + struct.pack(">ii", 0, 0), "isi"
    )


def alter_configs(connection: Connection, topic: str) -> int:
    """With validate_only."""
    body = (
        ONE + struct.pack(">b", OF_TOPIC) + encode_string(topic) + EMPTY + struct.pack(">?", True)
    )
    return _request_error(connection, ALTER_CONFIGS, body, "ii")


def commit(connection: Connection, group: str) -> int:
    """A commit outside of any generation."""
    body = encode_string(group) + struct.pack(">i", -1) + encode_string("") + struct.pack(">q", -1)
    body += ONE + encode_string(group) + ONE + struct.pack(">iq", 0, 0) + encode_string("")
    return _request_error(connection, OFFSET_COMMIT, body, "isii")


def join(connection: Connection, group: str) -> int:
    times = struct.pack(">i", SESSION_MS)
    protocols = ONE + encode_string("range") + EMPTY
    body = encode_string(group) + times + encode_string("") + encode_string("consumer") + protocols
    return _request_error(connection, JOIN, body, "")


def sync(connection: Connection, group: str) -> int:
    return _request_error(
        connection, SYNC, encode_string(group) + ONE + encode_string("nobody") + EMPTY, ""
    )


def leave(connection: Connection, group: str) -> int:
    return _request_error(connection, LEAVE, encode_string(group) + encode_string("nobody"), "")


def delete_positions(connection: Connection, group: str) -> int:
    body = encode_string(group) + ONE + encode_string(group) + ONE + struct.pack(">i", 0)
    return _request_error(connection, OFFSET_DELETE, body, "")


def add_partition(connection: Connection, transactional_id: str) -> int:
    place = ONE + encode_string(transactional_id) + ONE + struct.pack(">i", 0)
    return _request_error(
        connection,
        ADD_PARTITIONS,
        encode_string(transactional_id) + UNKNOWN_PRODUCER + place,
        "iisii",
    )


def add_offsets(connection: Connection, transactional_id: str) -> int:
    body = encode_string(transactional_id) + UNKNOWN_PRODUCER + encode_string(transactional_id)
    return _request_error(connection, ADD_OFFSETS, body, "i")


def commit_in_transaction(connection: Connection, transactional_id: str) -> int:
    body = encode_string(transactional_id) + encode_string(transactional_id) + UNKNOWN_PRODUCER
    body += (
        ONE + encode_string(transactional_id) + ONE + struct.pack(">iq", 0, 0) + encode_string("")
    )
    return _request_error(connection, COMMIT_OFFSETS, body, "iisii")


def end_transaction(connection: Connection, transactional_id: str) -> int:
    body = encode_string(transactional_id) + UNKNOWN_PRODUCER + struct.pack(">?", False)
    return _request_error(connection, END_TXN, body, "i")


def write_marker(connection: Connection, topic: str) -> int:
    """A marker of an unknown producer in a topic that does not exist."""
    body = ONE + UNKNOWN_PRODUCER + struct.pack(">?", False)
    body += ONE + encode_string(topic) + ONE + struct.pack(">ii", 0, 0)
    return _request_error(connection, WRITE_MARKERS, body, "iqisii")


def shut_down(connection: Connection) -> int:
    """ControlledShutdown of a broker that does not exist."""
    return _request_error(connection, CONTROLLED_SHUTDOWN, struct.pack(">i", NO_BROKER), "")
