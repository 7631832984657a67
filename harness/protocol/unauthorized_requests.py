"""Requests that nobody grants, packed byte by byte: each tells its error, and would change nothing
that a run is about if it were carried out.

ListOffsets 1, DeleteRecords 0, CreateTopics 1, AlterConfigs 0, DescribeConfigs 0, InitProducerId 0,
Heartbeat 0, OffsetFetch 2, DescribeGroups 0, DeleteGroups 0, StopReplica 0.
"""

from __future__ import annotations

import struct

from urteil.harness.protocol.connection import Wire
from urteil.harness.protocol.framing import Answer, frame, text

LIST_OFFSETS, DELETE_RECORDS, CREATE_TOPICS = (2, 1), (21, 0), (19, 1)
ALTER_CONFIGS, DESCRIBE_CONFIGS, INIT_PRODUCER_ID = (33, 0), (32, 0), (22, 0)
HEARTBEAT, OFFSET_FETCH, DESCRIBE_GROUPS, DELETE_GROUPS = (12, 0), (9, 2), (15, 0), (42, 0)
STOP_REPLICA = (5, 0)
TIMEOUT_MS = 1000
OF_TOPIC = 2
ONE, NONE = struct.pack(">i", 1), struct.pack(">i", -1)


def _ask(wire: Wire, api: tuple[int, int], body: bytes) -> Answer:
    return Answer(wire.ask(frame(api, 1, body)))


def list_offsets(wire: Wire, topic: str) -> int:
    """Where partition 0 ends."""
    body = struct.pack(">i", -1) + ONE + text(topic) + ONE + struct.pack(">iq", 0, -1)
    answer = _ask(wire, LIST_OFFSETS, body)
    return _of_partition(answer)


def delete_records(wire: Wire, topic: str) -> int:
    """None of partition 0."""
    body = ONE + text(topic) + ONE + struct.pack(">iqi", 0, 0, TIMEOUT_MS)
    answer = _ask(wire, DELETE_RECORDS, body)
    answer.take(">i")
    answer.take(">i")
    answer.text()
    answer.take(">i")
    answer.take(">i")
    answer.take(">q")
    return answer.take(">h")


def create_topic(wire: Wire, topic: str) -> int:
    """As a trial alone."""
    body = ONE + text(topic) + struct.pack(">ihiii?", 1, 1, 0, 0, TIMEOUT_MS, True)
    answer = _ask(wire, CREATE_TOPICS, body)
    answer.take(">i")
    answer.text()
    return answer.take(">h")


def alter_configs(wire: Wire, topic: str) -> int:
    """As a trial alone."""
    body = ONE + struct.pack(">b", OF_TOPIC) + text(topic) + struct.pack(">i?", 0, True)
    return _first(_ask(wire, ALTER_CONFIGS, body))


def describe_configs(wire: Wire, topic: str) -> int:
    body = ONE + struct.pack(">b", OF_TOPIC) + text(topic) + NONE
    return _first(_ask(wire, DESCRIBE_CONFIGS, body))


def init_producer_id(wire: Wire, transactional_id: str) -> int:
    body = text(transactional_id) + struct.pack(">i", TIMEOUT_MS)
    answer = _ask(wire, INIT_PRODUCER_ID, body)
    answer.take(">i")
    return answer.take(">h")


def heartbeat(wire: Wire, group: str) -> int:
    """Of nobody."""
    return _ask(wire, HEARTBEAT, text(group) + struct.pack(">i", 1) + text("nobody")).take(">h")


def fetch_positions(wire: Wire, group: str) -> int:
    """All of a group that has none."""
    answer = _ask(wire, OFFSET_FETCH, text(group) + NONE)
    if answer.take(">i"):
        raise ValueError("a group that nobody has has positions")
    return answer.take(">h")


def describe_group(wire: Wire, group: str) -> int:
    answer = _ask(wire, DESCRIBE_GROUPS, ONE + text(group))
    answer.take(">i")
    return answer.take(">h")


def delete_group(wire: Wire, group: str) -> int:
    answer = _ask(wire, DELETE_GROUPS, ONE + text(group))
    answer.take(">i")
    answer.take(">i")
    answer.text()
    return answer.take(">h")


def stop_replicas(wire: Wire) -> int:
    """None, as a controller that is none any more."""
    return _ask(wire, STOP_REPLICA, struct.pack(">ii?i", 1, 0, False, 0)).take(">h")


def _of_partition(answer: Answer) -> int:
    answer.take(">i")
    answer.text()
    answer.take(">i")
    answer.take(">i")
    return answer.take(">h")


def _first(answer: Answer) -> int:
    """Error of the first result, which stands after the throttle time."""
    answer.take(">i")
    answer.take(">i")
    return answer.take(">h")
