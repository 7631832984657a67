"""Produce 3, the first version with record batches of magic 2: one batch.

Requests are packed byte by byte, because no client library sends a batch that is invalid.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from crc32c import crc32c

NOT_LEADER_OR_FOLLOWER = 6
UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_HERE = (NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION)
PRODUCE, VERSION = 0, 3


def single_record_batch(
    key: bytes,
    value: bytes,
    timestamp_ms: int,
    *,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
) -> bytes:
    """A batch of one record, as a producer sends it. -1 means a producer without idempotence."""
    return record_batch(
        [(key, value)], timestamp_ms, producer_id=producer_id, epoch=epoch, sequence=sequence
    )


def record_batch(
    records: Sequence[tuple[bytes, bytes]],
    timestamp_ms: int,
    *,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
) -> bytes:
    """A batch of records (key, value) of one time, as a producer sends it."""
    last = len(records) - 1
    producer = (producer_id, epoch, sequence)
    tail = struct.pack(
        ">hiqqqhii", 0, last, timestamp_ms, timestamp_ms, *producer, len(records)
    ) + b"".join(_record(delta, *record) for delta, record in enumerate(records))
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, crc32c(tail)) + tail


def _record(offset_delta: int, key: bytes, value: bytes) -> bytes:
    body = b"\x00\x00" + encode_varint(offset_delta)
    body += encode_varint(len(key)) + key + encode_varint(len(value)) + value + encode_varint(0)
    return encode_varint(len(body)) + body


def encode_varint(value: int) -> bytes:
    """A non-negative number as a zigzag varint."""
    rest, out = value << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def produce_request(
    correlation_id: int, topic: str, partition: int, batch: bytes, timeout_ms: int
) -> bytes:
    """The frame of Produce 3 with acks=all."""
    name = topic.encode()
    body = struct.pack(">hhih3s", PRODUCE, VERSION, correlation_id, 3, b"raw")
    body += struct.pack(">hhii", -1, -1, timeout_ms, 1)
    body += struct.pack(">h", len(name)) + name
    body += struct.pack(">iii", 1, partition, len(batch)) + batch
    return struct.pack(">i", len(body)) + body


def read_produce_response(frame: bytes, topic: str) -> tuple[int, int]:
    """Error code and base offset of a response with one partition."""
    at = 4 + 4 + 2 + len(topic.encode()) + 4 + 4
    error, offset = struct.unpack_from(">hq", frame, at)
    return int(error), int(offset)
