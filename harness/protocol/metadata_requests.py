"""Requests that read the state of partitions from a chosen broker.

Metadata 1 to 8, from 7 on with leader epochs; ListOffsets 1 to 5, the first version with an error
for a leader that does not know its high watermark yet (KIP-207), from 2 on with an isolation, from
4 on with leader epochs; ListOffsets 7, the first that finds the largest timestamp (KIP-734);
OffsetForLeaderEpoch 2 and Fetch 9, which carry the leader epoch that the client knows;
InitProducerId 0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from urteil.harness.protocol.framing import (
    ResponseReader,
    encode_compact_string,
    encode_request,
    encode_string,
)

LATEST, EARLIEST, NEWEST = -1, -2, -3
METADATA, LIST_OFFSETS, EPOCH_END, FETCH = (3, 8), (2, 5), (23, 2), (1, 9)
LIST_NEWEST, INIT_PRODUCER_ID = (2, 7), (22, 0)
FETCH_BYTES = 1024
ERRORS = {
    1: "OFFSET_OUT_OF_RANGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    6: "NOT_LEADER_OR_FOLLOWER",
    74: "FENCED_LEADER_EPOCH",
    75: "UNKNOWN_LEADER_EPOCH",
    78: "OFFSET_NOT_AVAILABLE",
}

Slot = tuple[str, int]


def metadata_request(
    correlation: int, topics: Sequence[str] | None, version: int = METADATA[1]
) -> bytes:
    """The frame of Metadata; without `topics`, for all topics (from version 1 on). It creates no
    topic from version 4 on, or for all topics."""
    names = topics or ()
    body = struct.pack(">i", -1 if topics is None else len(names))
    body += b"".join(encode_string(topic) for topic in names)
    body += b"\0" * (3 if version >= 8 else 1 if version >= 4 else 0)
    return encode_request((METADATA[0], version), correlation, body)


def list_offsets_request(
    correlation: int,
    slots: Sequence[Slot],
    timestamp_ms: int,
    *,
    committed: bool = False,
    version: int = LIST_OFFSETS[1],
) -> bytes:
    """The frame of ListOffsets, with isolation read_uncommitted or read_committed."""
    body = struct.pack(">i", -1) + (struct.pack(">b", int(committed)) if version >= 2 else b"")
    body += struct.pack(">i", len(slots))
    for topic, partition in slots:
        body += encode_string(topic) + struct.pack(">ii", 1, partition)
        body += struct.pack(">i", -1) if version >= 4 else b""
        body += struct.pack(">q", timestamp_ms)
    return encode_request((LIST_OFFSETS[0], version), correlation, body)


def largest_timestamp_request(correlation: int, slots: Sequence[Slot]) -> bytes:
    """The frame of ListOffsets 7 for the record with the largest timestamp.

    Topics and partitions must be fewer than 127, names shorter than 127 bytes.
    """
    by_topic: dict[str, list[int]] = {}
    for topic, partition in slots:
        by_topic.setdefault(topic, []).append(partition)
    body = struct.pack(">ibB", -1, 0, len(by_topic) + 1)
    for topic, partitions in by_topic.items():
        body += encode_compact_string(topic) + struct.pack(">B", len(partitions) + 1)
        for partition in partitions:
            body += struct.pack(">iiqB", partition, -1, NEWEST, 0)
        body += b"\0"
    content = (
        struct.pack(">hhi", *LIST_NEWEST, correlation)
        + encode_string("probe")
        + b"\0"
        + body
        + b"\0"
    )
    return struct.pack(">i", len(content)) + content


def read_metadata(
    frame: bytes, version: int = METADATA[1]
) -> tuple[dict[str, int], list[tuple[str, int, int, int | None, int]]]:
    """Broker ids by address, and (topic, partition, leader, leader epoch, size of the ISR). Before
    version 7 there are no epochs."""
    answer = ResponseReader(frame)
    if version >= 3:
        answer.read(">i")
    brokers: dict[str, int] = {}
    for _ in range(answer.read(">i")):
        node, host = answer.read(">i"), answer.read_string()
        brokers[f"{host}:{answer.read('>i')}"] = node
        answer.read_string()
    if version >= 2:
        answer.read_string()
    answer.read(">i")
    results = []
    for _ in range(answer.read(">i")):
        answer.read(">h")
        topic = answer.read_string()
        answer.read(">b")
        for _ in range(answer.read(">i")):
            answer.read(">h")
            partition, leader = answer.read(">i"), answer.read(">i")
            epoch = answer.read(">i") if version >= 7 else None
            _, in_sync = answer.read_int_array(), answer.read_int_array()
            if version >= 5:
                answer.read_int_array()
            results.append((topic, partition, leader, epoch, len(in_sync)))
        if version >= 8:
            answer.read(">i")
    return brokers, results


def read_list_offsets(
    frame: bytes, version: int = LIST_OFFSETS[1]
) -> list[tuple[str, int, int, int, int, int]]:
    """(topic, partition, error, timestamp, offset, leader epoch)."""
    answer = ResponseReader(frame)
    if version >= 2:
        answer.read(">i")
    results = []
    for _ in range(answer.read(">i")):
        topic = answer.read_string()
        for _ in range(answer.read(">i")):
            partition, error = answer.read(">i"), answer.read(">h")
            timestamp_ms, offset = answer.read(">q"), answer.read(">q")
            epoch = answer.read(">i") if version >= 4 else -1
            results.append((topic, partition, error, timestamp_ms, offset, epoch))
    return results


def read_largest_timestamp(frame: bytes) -> list[tuple[str, int, int, int, int, int]]:
    """As `read_list_offsets`, for `largest_timestamp_request`."""
    answer = ResponseReader(frame)
    answer.read(">B")  # the tagged fields of the header
    answer.read(">i")
    results = []
    for _ in range(answer.read(">B") - 1):
        topic = answer.read_compact_string()
        for _ in range(answer.read(">B") - 1):
            partition, error = answer.read(">i"), answer.read(">h")
            timestamp_ms, offset = answer.read(">q"), answer.read(">q")
            results.append((topic, partition, error, timestamp_ms, offset, answer.read(">i")))
            answer.read(">B")
        answer.read(">B")
    return results


def epoch_end_request(correlation: int, slot: Slot, current: int, epoch: int) -> bytes:
    """The frame of OffsetForLeaderEpoch 2 for the leader of the epoch `current`."""
    topic, partition = slot
    body = (
        struct.pack(">i", 1)
        + encode_string(topic)
        + struct.pack(">iiii", 1, partition, current, epoch)
    )
    return encode_request(EPOCH_END, correlation, body)


def read_epoch_end(frame: bytes) -> tuple[int, int, int]:
    """Error, epoch and end offset of a response with one partition."""
    answer = ResponseReader(frame)
    answer.read(">i")
    answer.read(">i")
    answer.read_string()
    answer.read(">i")
    error = answer.read(">h")
    answer.read(">i")
    return error, answer.read(">i"), answer.read(">q")


def producer_id_request(correlation: int) -> bytes:
    """The frame of InitProducerId 0 for a producer without transactional id."""
    return encode_request(INIT_PRODUCER_ID, correlation, struct.pack(">hi", -1, 0))


def read_producer_id(frame: bytes) -> tuple[int, int]:
    """Error and producer id."""
    answer = ResponseReader(frame)
    answer.read(">i")
    return answer.read(">h"), answer.read(">q")


def fetch_request(correlation: int, slot: Slot, current: int, offset: int) -> bytes:
    """The frame of Fetch 9 without session and without waiting."""
    topic, partition = slot
    body = struct.pack(">iiiibiii", -1, 0, 0, FETCH_BYTES, 0, 0, -1, 1) + encode_string(topic)
    body += struct.pack(">iiiqqi", 1, partition, current, offset, -1, FETCH_BYTES)
    return encode_request(FETCH, correlation, body + struct.pack(">i", 0))


def read_fetch_error(frame: bytes) -> int:
    """The error of a response with one partition, or its top-level error."""
    answer = ResponseReader(frame)
    answer.read(">i")
    top_level_error = answer.read(">h")
    answer.read(">i")
    if top_level_error or not answer.read(">i"):
        return top_level_error
    answer.read_string()
    answer.read(">i")
    answer.read(">i")
    return answer.read(">h")
