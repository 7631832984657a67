"""Requests about positions that are forgotten, packed byte by byte, each to a group's coordinator.

FindCoordinator 0, OffsetCommit 2, OffsetFetch 2, OffsetDelete 0, DeleteGroups 0. A group without
members takes positions from anybody.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from urteil.harness.protocol.framing import Answer, frame, text

FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH = (10, 0), (8, 2), (9, 2)
OFFSET_DELETE, DELETE_GROUPS = (47, 0), (42, 0)
_ONE = struct.pack(">i", 1)


def find_request(group: str) -> bytes:
    return frame(FIND_COORDINATOR, 1, text(group))


def read_find(data: bytes) -> tuple[int, str]:
    """Error and address of the coordinator."""
    answer = Answer(data)
    error = answer.take(">h")
    answer.take(">i")
    host = answer.text()
    return error, f"{host}:{answer.take('>i')}"


def commit_request(
    group: str,
    topic: str,
    partitions: Sequence[int],
    offset: int,
    retention_ms: int = -1,
    member: tuple[int, str] = (-1, ""),
) -> bytes:
    """One position for each partition, by nobody or a member (generation and id), without a text;
    to be kept for so long, or for as long as brokers keep them."""
    generation, member_id = member
    body = text(group) + struct.pack(">i", generation) + text(member_id)
    body += struct.pack(">q", retention_ms)
    body += _ONE + text(topic) + struct.pack(">i", len(partitions))
    for partition in partitions:
        body += struct.pack(">iq", partition, offset) + text("")
    return frame(OFFSET_COMMIT, 1, body)


def read_commit(data: bytes) -> int:
    """The first error."""
    return _first_error(Answer(data))


def fetch_request(group: str, topic: str, partitions: Sequence[int]) -> bytes:
    return frame(OFFSET_FETCH, 1, text(group) + _places(topic, partitions))


def read_fetch(data: bytes) -> tuple[int, dict[int, int | None]]:
    """The first error, and positions by partition; None where there is none."""
    answer = Answer(data)
    found: dict[int, int | None] = {}
    errors = []
    for _ in range(answer.take(">i")):
        answer.text()
        for _ in range(answer.take(">i")):
            partition, offset = answer.take(">i"), answer.take(">q")
            answer.text()
            errors.append(answer.take(">h"))
            found[partition] = None if offset < 0 else offset
    errors.append(answer.take(">h"))
    return next(filter(None, errors), 0), found


def delete_request(group: str, topic: str, partitions: Sequence[int]) -> bytes:
    """Of some positions."""
    return frame(OFFSET_DELETE, 1, text(group) + _places(topic, partitions))


def read_delete(data: bytes) -> int:
    """The first error."""
    answer = Answer(data)
    error = answer.take(">h")
    answer.take(">i")
    return error or _first_error(answer)


def delete_group_request(group: str) -> bytes:
    """Of a group with all its positions."""
    return frame(DELETE_GROUPS, 1, _ONE + text(group))


def read_delete_group(data: bytes) -> int:
    answer = Answer(data)
    answer.take(">i")
    answer.take(">i")
    answer.text()
    return answer.take(">h")


def _places(topic: str, partitions: Sequence[int]) -> bytes:
    return _ONE + text(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)


def _first_error(answer: Answer) -> int:
    errors = []
    for _ in range(answer.take(">i")):
        answer.text()
        for _ in range(answer.take(">i")):
            answer.take(">i")
            errors.append(answer.take(">h"))
    return next(filter(None, errors), 0)
