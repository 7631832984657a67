"""Requests about committed offsets, each sent to the coordinator of a group.

FindCoordinator 0, OffsetCommit 2 and 9, OffsetFetch 2, OffsetDelete 0, DeleteGroups 0. A group
without members accepts commits of any client. OffsetCommit 9 is the first version with member
epochs (KIP-848).
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence

from urteil.harness.protocol.framing import (
    ResponseReader,
    encode_compact_string,
    encode_request,
    encode_string,
)

FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH = (10, 0), (8, 2), (9, 2)
OFFSET_DELETE, DELETE_GROUPS = (47, 0), (42, 0)
MEMBER_COMMIT = (8, 9)
NO_TAGS, NULL = b"\0", b"\0"
_ONE = struct.pack(">i", 1)


def find_coordinator_request(group: str) -> bytes:
    return encode_request(FIND_COORDINATOR, 1, encode_string(group))


def read_find_coordinator(data: bytes) -> tuple[int, str]:
    """Error and address of the coordinator."""
    answer = ResponseReader(data)
    error = answer.read(">h")
    answer.read(">i")
    host = answer.read_string()
    return error, f"{host}:{answer.read('>i')}"


def commit_request(
    group: str,
    topic: str,
    partitions: Sequence[int],
    offset: int,
    retention_ms: int = -1,
    member: tuple[int, str] = (-1, ""),
) -> bytes:
    """OffsetCommit 2 of one offset for each partition, without metadata.

    `member` is generation and member id; the default is a client outside of the group.
    `retention_ms` is the retention of the offsets; -1 is the brokers' default.
    """
    generation, member_id = member
    body = encode_string(group) + struct.pack(">i", generation) + encode_string(member_id)
    body += struct.pack(">q", retention_ms)
    body += _ONE + encode_string(topic) + struct.pack(">i", len(partitions))
    for partition in partitions:
        body += struct.pack(">iq", partition, offset) + encode_string("")
    return encode_request(OFFSET_COMMIT, 1, body)


def read_commit(data: bytes) -> int:
    """The first error."""
    return _first_error(ResponseReader(data))


def member_commit_request(
    group: str, epoch: int, member_id: str, positions: Mapping[tuple[str, int], int]
) -> bytes:
    """OffsetCommit 9 of a member in an epoch, without metadata. Fewer than 127 topics, and
    partitions of each."""
    topics: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for (topic, partition), offset in positions.items():
        topics[topic].append((partition, offset))
    body = NO_TAGS + encode_compact_string(group) + struct.pack(">i", epoch)
    body += encode_compact_string(member_id) + NULL + bytes([len(topics) + 1])
    for topic, commits in topics.items():
        body += encode_compact_string(topic) + bytes([len(commits) + 1])
        for partition, offset in commits:
            body += struct.pack(">iqi", partition, offset, -1) + NULL + NO_TAGS
        body += NO_TAGS
    return encode_request(MEMBER_COMMIT, 1, body + NO_TAGS)


def read_member_commit(data: bytes) -> int:
    """The first error of OffsetCommit 9."""
    answer = ResponseReader(data)
    answer.read(">b")
    answer.read(">i")
    errors = []
    for _ in range(answer.read(">B") - 1):
        answer.read_compact_string()
        for _ in range(answer.read(">B") - 1):
            answer.read(">i")
            errors.append(answer.read(">h"))
            answer.read(">b")
        answer.read(">b")
    return next(filter(None, errors), 0)


def fetch_request(group: str, topic: str, partitions: Sequence[int]) -> bytes:
    return encode_request(OFFSET_FETCH, 1, encode_string(group) + _partitions(topic, partitions))


def read_fetch(data: bytes) -> tuple[int, dict[int, int | None]]:
    """The first error, and the committed offsets by partition; None if there is none."""
    answer = ResponseReader(data)
    offsets: dict[int, int | None] = {}
    errors = []
    for _ in range(answer.read(">i")):
        answer.read_string()
        for _ in range(answer.read(">i")):
            partition, offset = answer.read(">i"), answer.read(">q")
            answer.read_string()
            errors.append(answer.read(">h"))
            offsets[partition] = None if offset < 0 else offset
    errors.append(answer.read(">h"))
    return next(filter(None, errors), 0), offsets


def offset_delete_request(group: str, topic: str, partitions: Sequence[int]) -> bytes:
    """OffsetDelete 0 of some partitions."""
    return encode_request(OFFSET_DELETE, 1, encode_string(group) + _partitions(topic, partitions))


def read_delete(data: bytes) -> int:
    """The first error."""
    answer = ResponseReader(data)
    error = answer.read(">h")
    answer.read(">i")
    return error or _first_error(answer)


def delete_group_request(group: str) -> bytes:
    """DeleteGroups 0 of one group."""
    return encode_request(DELETE_GROUPS, 1, _ONE + encode_string(group))


def read_delete_group(data: bytes) -> int:
    answer = ResponseReader(data)
    answer.read(">i")
    answer.read(">i")
    answer.read_string()
    return answer.read(">h")


def _partitions(topic: str, partitions: Sequence[int]) -> bytes:
    return (
        _ONE
        + encode_string(topic)
        + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    )


def _first_error(answer: ResponseReader) -> int:
    errors = []
    for _ in range(answer.read(">i")):
        answer.read_string()
        for _ in range(answer.read(">i")):
            answer.read(">i")
            errors.append(answer.read(">h"))
    return next(filter(None, errors), 0)
