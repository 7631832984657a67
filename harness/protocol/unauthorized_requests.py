"""Requests of users without permission. Each function returns the error.

Even if a broker executed the request, nothing that the run uses would change.

ListOffsets 1, DeleteRecords 0, CreateTopics 1, AlterConfigs 0, DescribeConfigs 0, InitProducerId 0,
Heartbeat 0, OffsetFetch 2, DescribeGroups 0, DeleteGroups 0, StopReplica 0.
"""

from __future__ import annotations

import struct

from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.framing import ResponseReader, encode_request, encode_string

LIST_OFFSETS, DELETE_RECORDS, CREATE_TOPICS = (2, 1), (21, 0), (19, 1)
ALTER_CONFIGS, DESCRIBE_CONFIGS, INIT_PRODUCER_ID = (33, 0), (32, 0), (22, 0)
HEARTBEAT, OFFSET_FETCH, DESCRIBE_GROUPS, DELETE_GROUPS = (12, 0), (9, 2), (15, 0), (42, 0)
STOP_REPLICA = (5, 0)
TIMEOUT_MS = 1000
OF_TOPIC = 2
ONE, NONE = struct.pack(">i", 1), struct.pack(">i", -1)


def _call(connection: Connection, api: tuple[int, int], body: bytes) -> ResponseReader:
    return ResponseReader(connection.call(encode_request(api, 1, body)))


def list_offsets(connection: Connection, topic: str) -> int:
    """ListOffsets of partition 0."""
    body = struct.pack(">i", -1) + ONE + encode_string(topic) + ONE + struct.pack(">iq", 0, -1)
    answer = _call(connection, LIST_OFFSETS, body)
    return _read_partition_error(answer)


def delete_records(connection: Connection, topic: str) -> int:
    """DeleteRecords of partition 0 before offset 0, which deletes nothing."""
    body = ONE + encode_string(topic) + ONE + struct.pack(">iqi", 0, 0, TIMEOUT_MS)
    answer = _call(connection, DELETE_RECORDS, body)
    answer.read(">i")
    answer.read(">i")
    answer.read_string()
    answer.read(">i")
    answer.read(">i")
    answer.read(">q")
    return answer.read(">h")


def create_topic(connection: Connection, topic: str) -> int:
    """With validate_only."""
    body = ONE + encode_string(topic) + struct.pack(">ihiii?", 1, 1, 0, 0, TIMEOUT_MS, True)
    answer = _call(connection, CREATE_TOPICS, body)
    answer.read(">i")
    answer.read_string()
    return answer.read(">h")


def alter_configs(connection: Connection, topic: str) -> int:
    """With validate_only."""
    body = ONE + struct.pack(">b", OF_TOPIC) + encode_string(topic) + struct.pack(">i?", 0, True)
    return _read_first_error(_call(connection, ALTER_CONFIGS, body))


def describe_configs(connection: Connection, topic: str) -> int:
    body = ONE + struct.pack(">b", OF_TOPIC) + encode_string(topic) + NONE
    return _read_first_error(_call(connection, DESCRIBE_CONFIGS, body))


def init_producer_id(connection: Connection, transactional_id: str) -> int:
    body = encode_string(transactional_id) + struct.pack(">i", TIMEOUT_MS)
    answer = _call(connection, INIT_PRODUCER_ID, body)
    answer.read(">i")
    return answer.read(">h")


def heartbeat(connection: Connection, group: str) -> int:
    """Heartbeat of an unknown member."""
    return _call(
        connection, HEARTBEAT, encode_string(group) + struct.pack(">i", 1) + encode_string("nobody")
    ).read(">h")


def fetch_positions(connection: Connection, group: str) -> int:
    """OffsetFetch of all offsets of a group without offsets."""
    answer = _call(connection, OFFSET_FETCH, encode_string(group) + NONE)
    if answer.read(">i"):
        raise ValueError("the response has committed offsets of an unknown group")
    return answer.read(">h")


def describe_group(connection: Connection, group: str) -> int:
    answer = _call(connection, DESCRIBE_GROUPS, ONE + encode_string(group))
    answer.read(">i")
    return answer.read(">h")


def delete_group(connection: Connection, group: str) -> int:
    answer = _call(connection, DELETE_GROUPS, ONE + encode_string(group))
    answer.read(">i")
    answer.read(">i")
    answer.read_string()
    return answer.read(">h")


def stop_replicas(connection: Connection) -> int:
    """StopReplica without partitions, from a former controller."""
    return _call(connection, STOP_REPLICA, struct.pack(">ii?i", 1, 0, False, 0)).read(">h")


def _read_partition_error(answer: ResponseReader) -> int:
    answer.read(">i")
    answer.read_string()
    answer.read(">i")
    answer.read(">i")
    return answer.read(">h")


def _read_first_error(answer: ResponseReader) -> int:
    """The error of the first result, behind the throttle time."""
    answer.read(">i")
    answer.read(">i")
    return answer.read(">h")
