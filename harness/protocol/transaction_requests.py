"""Requests of a transactional producer, packed byte by byte: the oldest versions of each.

FindCoordinator 1, InitProducerId 0, AddPartitionsToTxn 0, AddOffsetsToTxn 0, Produce 3, EndTxn 0,
WriteTxnMarkers 0 (as a coordinator sends it), and TxnOffsetCommit 3, the first that tells in which
generation, and as whom (KIP-447). A client of our own can then do what no library does, and send an
old request late.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from crc32c import crc32c

from urteil.harness.protocol.produce_requests import varint

INIT_PRODUCER_ID, ADD_PARTITIONS, PRODUCE, END_TXN = (22, 0), (24, 0), (0, 3), (26, 0)
FIND_COORDINATOR, ADD_OFFSETS, COMMIT_OFFSETS = (10, 1), (25, 0), (28, 3)
WRITE_MARKERS = (27, 0)
OFFSET_COMMIT, STABLE_OFFSETS = (8, 2), (9, 7)
"""Of a group, outside of any transaction."""
OF_GROUP, OF_TRANSACTIONS = 0, 1
TRANSACTIONAL = 0x10


@dataclass(slots=True)
class Producer:
    """A transactional id with what InitProducerId gave it, and its next sequence by partition."""

    transactional_id: str
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def who(self) -> bytes:
        """The three fields that most requests begin with."""
        return text(self.transactional_id) + struct.pack(">qh", self.producer_id, self.epoch)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def frame(api: tuple[int, int], body: bytes) -> bytes:
    """A whole request with its size."""
    content = struct.pack(">hhi", *api, 1) + text("late") + body
    return struct.pack(">i", len(content)) + content


def find_request(key: str, kind: int) -> bytes:
    """Who coordinates a group or a transactional id; the first to ask has their topic made."""
    return frame(FIND_COORDINATOR, text(key) + struct.pack(">b", kind))


def init_request(transactional_id: str, timeout_ms: int) -> bytes:
    return frame(INIT_PRODUCER_ID, text(transactional_id) + struct.pack(">i", timeout_ms))


def add_request(producer: Producer, topic: str, partition: int) -> bytes:
    body = producer.who() + struct.pack(">i", 1) + text(topic) + struct.pack(">ii", 1, partition)
    return frame(ADD_PARTITIONS, body)


def add_offsets_request(producer: Producer, group: str) -> bytes:
    return frame(ADD_OFFSETS, producer.who() + text(group))


def offsets_request(
    producer: Producer, member: tuple[str, int, str], topic: str, partition: int, offset: int
) -> bytes:
    """One position of a member: its group, generation and id. Names are short (`compact`)."""
    group, generation, member_id = member
    body = b"\0" + compact(producer.transactional_id) + compact(group)
    body += struct.pack(">qhi", producer.producer_id, producer.epoch, generation)
    body += compact(member_id) + b"\0\x02" + compact(topic) + b"\x02"
    body += struct.pack(">iqi", partition, offset, -1) + compact("") + b"\0\0\0"
    return frame(COMMIT_OFFSETS, body)


def compact(value: str) -> bytes:
    """A compact string of fewer than 127 bytes."""
    encoded = value.encode()
    return bytes([len(encoded) + 1]) + encoded


def end_request(producer: Producer, *, commit: bool) -> bytes:
    return frame(END_TXN, producer.who() + struct.pack(">b", commit))


def marker_request(
    producer: Producer, topic: str, partition: int, *, commit: bool, coordinator_epoch: int
) -> bytes:
    """The end of a transaction in one partition, by a coordinator of this epoch."""
    body = struct.pack(">iqhb", 1, producer.producer_id, producer.epoch, commit)
    body += struct.pack(">i", 1) + text(topic) + struct.pack(">ii", 1, partition)
    return frame(WRITE_MARKERS, body + struct.pack(">i", coordinator_epoch))


def produce_request(producer: Producer, topic: str, partition: int, batch: bytes) -> bytes:
    body = text(producer.transactional_id) + struct.pack(">hii", -1, 5_000, 1) + text(topic)
    return frame(PRODUCE, body + struct.pack(">iii", 1, partition, len(batch)) + batch)


def batch(producer: Producer, sequence: int, key: bytes, value: bytes, timestamp_ms: int) -> bytes:
    """One record in a transaction."""
    body = b"\x00\x00\x00" + varint(len(key)) + key + varint(len(value)) + value
    record = varint(len(body) + 1) + body + varint(0)
    tail = struct.pack(
        ">hiqqqhii", TRANSACTIONAL, 0, timestamp_ms, timestamp_ms, producer.producer_id,
        producer.epoch, sequence, 1,
    ) + record  # fmt: skip
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, crc32c(tail)) + tail


def error_of(api: tuple[int, int], answer: bytes, topic: str) -> int:
    """The one error code of an answer; topics and partitions are one each."""
    if api == ADD_PARTITIONS:
        at = 4 + 4 + 4 + 2 + len(topic.encode()) + 4 + 4
    elif api in (PRODUCE, OFFSET_COMMIT):
        at = 4 + 4 + 2 + len(topic.encode()) + 4 + 4
    elif api == STABLE_OFFSETS:
        at = 4 + 1 + 4 + 1
        if answer[at - 1] > 1:  # else no topic is told of, but an error of the whole
            at += len(compact(topic)) + 1 + 4 + 8 + 4
            at += answer[at] or 1  # a compact string: its length and one, or null
    elif api == COMMIT_OFFSETS:
        at = 4 + 1 + 4 + 1 + 1 + len(topic.encode()) + 1 + 4
    else:
        at = 4 + 4
    (error,) = struct.unpack_from(">h", answer, at)
    return int(error)


def read_init(answer: bytes) -> tuple[int, int]:
    """Producer id and epoch."""
    producer_id, epoch = struct.unpack_from(">qh", answer, 4 + 4 + 2)
    return int(producer_id), int(epoch)


def read_offset(answer: bytes, topic: str) -> int:
    """The base offset that Produce answered."""
    (offset,) = struct.unpack_from(">q", answer, 4 + 4 + 2 + len(topic.encode()) + 4 + 4 + 2)
    return int(offset)
