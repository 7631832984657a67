"""Requests of a transactional producer, packed byte by byte.

FindCoordinator 1, InitProducerId 0, AddPartitionsToTxn 0, AddOffsetsToTxn 0, Produce 3, EndTxn 0
and 5, WriteTxnMarkers 0 and 1 (as a coordinator sends them; Apache Kafka 4 serves no 0), and
TxnOffsetCommit 3, the first version with generation and member id (KIP-447). The lab's client can
so send an old request late, as no library does. From EndTxn 5 on each transaction has an epoch of
its own (KIP-890): the response has the producer id and the epoch of the next one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from crc32c import crc32c

from urteil.harness.protocol.framing import encode_compact_string, encode_string
from urteil.harness.protocol.produce_requests import encode_varint

INIT_PRODUCER_ID, ADD_PARTITIONS, PRODUCE, END_TXN = (22, 0), (24, 0), (0, 3), (26, 0)
END_TXN_WITH_EPOCH = (26, 5)
FIND_COORDINATOR, ADD_OFFSETS, COMMIT_OFFSETS = (10, 1), (25, 0), (28, 3)
WRITE_MARKERS = (27, 1)
NO_TAGS = b"\0"
OFFSET_COMMIT, STABLE_OFFSETS = (8, 2), (9, 7)
"""Requests of a group, outside of any transaction."""
GROUP_COORDINATOR, TRANSACTION_COORDINATOR = 0, 1
TRANSACTIONAL = 0x10


@dataclass(slots=True)
class Producer:
    """A transactional id with its producer id, its epoch and the next sequence by partition."""

    transactional_id: str
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def identity_fields(self) -> bytes:
        """Transactional id, producer id and epoch, with which most requests begin."""
        return encode_string(self.transactional_id) + struct.pack(
            ">qh", self.producer_id, self.epoch
        )


def encode_request(api: tuple[int, int], body: bytes) -> bytes:
    """A complete frame with a request header of version 1. The tagged fields with which version 2
    ends belong to the body."""
    content = struct.pack(">hhi", *api, 1) + encode_string("late") + body
    return struct.pack(">i", len(content)) + content


def find_coordinator_request(key: str, kind: int) -> bytes:
    """The coordinator of a group or a transactional id. The first request creates their topic."""
    return encode_request(FIND_COORDINATOR, encode_string(key) + struct.pack(">b", kind))


def init_producer_id_request(transactional_id: str, timeout_ms: int) -> bytes:
    return encode_request(
        INIT_PRODUCER_ID, encode_string(transactional_id) + struct.pack(">i", timeout_ms)
    )


def add_partitions_request(producer: Producer, topic: str, partition: int) -> bytes:
    body = (
        producer.identity_fields()
        + struct.pack(">i", 1)
        + encode_string(topic)
        + struct.pack(">ii", 1, partition)
    )
    return encode_request(ADD_PARTITIONS, body)


def add_offsets_request(producer: Producer, group: str) -> bytes:
    return encode_request(ADD_OFFSETS, producer.identity_fields() + encode_string(group))


def txn_offset_commit_request(
    producer: Producer, member: tuple[str, int, str], topic: str, partition: int, offset: int
) -> bytes:
    """Commit an offset for a member (group, generation, id). Names have fewer than 127 bytes."""
    group, generation, member_id = member
    body = b"\0" + encode_compact_string(producer.transactional_id) + encode_compact_string(group)
    body += struct.pack(">qhi", producer.producer_id, producer.epoch, generation)
    body += encode_compact_string(member_id) + b"\0\x02" + encode_compact_string(topic) + b"\x02"
    body += struct.pack(">iqi", partition, offset, -1) + encode_compact_string("") + b"\0\0\0"
    return encode_request(COMMIT_OFFSETS, body)


def end_txn_request(producer: Producer, *, commit: bool, api: tuple[int, int] = END_TXN) -> bytes:
    """EndTxn 0 or 5. The latter has a request header of version 2, and compact strings."""
    if api == END_TXN:
        return encode_request(END_TXN, producer.identity_fields() + struct.pack(">b", commit))
    body = encode_compact_string(producer.transactional_id)
    body += struct.pack(">qhb", producer.producer_id, producer.epoch, commit)
    return encode_request(api, NO_TAGS + body + NO_TAGS)


def write_markers_request(
    producer: Producer,
    topic: str,
    partition: int,
    *,
    commit: bool,
    coordinator_epoch: int,
    api: tuple[int, int] = WRITE_MARKERS,
) -> bytes:
    """The marker of a transaction in one partition, from a coordinator of this epoch."""
    marker = struct.pack(">qhb", producer.producer_id, producer.epoch, commit)
    partitions, epoch = struct.pack(">i", partition), struct.pack(">i", coordinator_epoch)
    if api[1] == 0:
        count_of_one = struct.pack(">i", 1)
        topics = count_of_one + encode_string(topic) + count_of_one + partitions
        return encode_request(api, count_of_one + marker + topics + epoch)
    count_of_one = b"\x02"
    topics = count_of_one + encode_compact_string(topic) + count_of_one + partitions + NO_TAGS
    body = count_of_one + marker + topics + epoch + NO_TAGS + NO_TAGS
    return encode_request(api, NO_TAGS + body)


def produce_request(producer: Producer, topic: str, partition: int, batch: bytes) -> bytes:
    body = (
        encode_string(producer.transactional_id)
        + struct.pack(">hii", -1, 5_000, 1)
        + encode_string(topic)
    )
    return encode_request(PRODUCE, body + struct.pack(">iii", 1, partition, len(batch)) + batch)


def batch(producer: Producer, sequence: int, key: bytes, value: bytes, timestamp_ms: int) -> bytes:
    """A transactional batch of one record."""
    body = b"\x00\x00\x00" + encode_varint(len(key)) + key + encode_varint(len(value)) + value
    record = encode_varint(len(body) + 1) + body + encode_varint(0)
    tail = struct.pack(
        ">hiqqqhii", TRANSACTIONAL, 0, timestamp_ms, timestamp_ms, producer.producer_id,
        producer.epoch, sequence, 1,
    ) + record  # fmt: skip
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, crc32c(tail)) + tail


def read_error(api: tuple[int, int], answer: bytes, topic: str) -> int:
    """The error code of a response with one topic and one partition."""
    if api == ADD_PARTITIONS:
        at = 4 + 4 + 4 + 2 + len(topic.encode()) + 4 + 4
    elif api in (PRODUCE, OFFSET_COMMIT):
        at = 4 + 4 + 2 + len(topic.encode()) + 4 + 4
    elif api == STABLE_OFFSETS:
        at = 4 + 1 + 4 + 1
        if answer[at - 1] > 1:  # otherwise there is no topic, but a top-level error
            at += len(encode_compact_string(topic)) + 1 + 4 + 8 + 4
            at += answer[at] or 1  # a compact string: its length and one, or null
    elif api == COMMIT_OFFSETS:
        at = 4 + 1 + 4 + 1 + 1 + len(topic.encode()) + 1 + 4
    elif api == END_TXN_WITH_EPOCH:
        at = 4 + 1 + 4
    else:
        at = 4 + 4
    (error,) = struct.unpack_from(">h", answer, at)
    return int(error)


def read_init_producer_id(answer: bytes) -> tuple[int, int]:
    """Producer id and epoch."""
    producer_id, epoch = struct.unpack_from(">qh", answer, 4 + 4 + 2)
    return int(producer_id), int(epoch)


def read_next_epoch(answer: bytes) -> tuple[int, int]:
    """Producer id and epoch of the next transaction, from a response to EndTxn 5."""
    producer_id, epoch = struct.unpack_from(">qh", answer, 4 + 1 + 4 + 2)
    return int(producer_id), int(epoch)


def read_base_offset(answer: bytes, topic: str) -> int:
    """The base offset of a Produce response."""
    (offset,) = struct.unpack_from(">q", answer, 4 + 4 + 2 + len(topic.encode()) + 4 + 4 + 2)
    return int(offset)
