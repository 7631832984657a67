"""Headers and checksums of record batches of magic 2 (source: KIP-98, `DefaultRecordBatch`).

The broker parses the headers of the batches that it receives and serves; records only if it must.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from urteil.broker.base.crc32c import crc32c
from urteil.broker.wire.primitives import Buffer, CorruptBatch

LOG_OVERHEAD_BYTES = 12
"""Base offset and batch length; the length does not include them."""
HEADER_BYTES = 61
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
MAX_TIMESTAMP_POSITION = 35

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
OF_TRANSACTIONS = TRANSACTIONAL | CONTROL
DELETE_HORIZON = 0x40
KNOWN_ATTRIBUTES = 0x7F

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
MAX_SEQUENCE = (1 << 31) - 1

HEADER_LAYOUT = struct.Struct(">qiibIhiqqqhii")
CRC_LAYOUT = struct.Struct(">I")
_LENGTH = struct.Struct(">i")
_TIMESTAMP = struct.Struct(">q")


class BatchHeader(NamedTuple):
    """The first 61 bytes of a batch. Sizes in bytes, timestamps in ms since the epoch."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """The size of the batch, with base offset and length."""
        return LOG_OVERHEAD_BYTES + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap to 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """The codec by its number in `Compression`; a bad peer may send an unknown one."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON)

    @property
    def timestamp_type(self) -> int:
        """0: the producer's time; 1: the broker's at append."""
        return 1 if self.attributes & LOG_APPEND_TIME else 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID


def has_transactional_bit(batch: Buffer) -> bool:
    """Whether a batch of magic 2 is transactional, without parsing its header."""
    return bool(batch[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL)


def parse_header(data: Buffer, pos: int = 0) -> BatchHeader:
    """Read a magic 2 header at `pos`. Raises CorruptBatch if it is truncated or of another
    magic."""
    if len(data) - pos < HEADER_BYTES:
        raise CorruptBatch("truncated batch header")
    header = BatchHeader._make(HEADER_LAYOUT.unpack_from(data, pos))
    if header.magic != 2:
        raise CorruptBatch(f"the batch has magic {header.magic}, expected 2")
    if header.batch_length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
        raise CorruptBatch(f"the batch length {header.batch_length} is less than a header")
    return header


def iter_batches(
    data: Buffer, *, allow_partial_tail: bool = False
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches of magic 2 in `data`, as views of its memory; checksums are not verified.

    Raises CorruptBatch for another magic, a wrong length or a truncated batch. With
    `allow_partial_tail` a truncated last batch is ignored, as in Fetch responses.
    """
    view = memoryview(data)
    pos, end = 0, len(view)
    while pos < end:
        if allow_partial_tail and end - pos < bytes_needed(view, pos, end):
            return
        header = parse_header(view, pos)
        stop = pos + header.size
        if stop > end:
            raise CorruptBatch(f"a batch of {header.size} bytes, but only {end - pos} bytes remain")
        yield header, view[pos:stop]
        pos = stop


def bytes_needed(view: memoryview, pos: int, end: int) -> int:
    """The bytes that the batch at `pos` needs by its length field, or those of that field."""
    if end - pos < LOG_OVERHEAD_BYTES:
        return LOG_OVERHEAD_BYTES
    (length,) = _LENGTH.unpack_from(view, pos + 8)
    return LOG_OVERHEAD_BYTES + max(0, int(length))


def is_crc_valid(batch: Buffer) -> bool:
    """Whether the CRC-32C of a complete batch is the one in its header."""
    if len(batch) < HEADER_BYTES:
        return False
    (expected,) = CRC_LAYOUT.unpack_from(batch, CRC_POSITION)
    return bool(crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]) == expected)


def set_timestamps(batch: bytearray | memoryview, max_timestamp: int, *, of_broker: bool) -> None:
    """Set the largest timestamp and the timestamp type: the broker's append time, or the
    producer's.

    The base timestamp stays. Unknown attributes are cleared, as in Apache Kafka, and the CRC is
    updated.
    """
    kept = batch[ATTRIBUTES_POSITION + 1] & (KNOWN_ATTRIBUTES & ~LOG_APPEND_TIME)
    batch[ATTRIBUTES_POSITION] = 0
    batch[ATTRIBUTES_POSITION + 1] = kept | (LOG_APPEND_TIME if of_broker else 0)
    _TIMESTAMP.pack_into(batch, MAX_TIMESTAMP_POSITION, max_timestamp)
    CRC_LAYOUT.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]))


def put_header(batch: bytearray, header: BatchHeader) -> None:
    """Write the header into the first bytes of `batch`, with the length and CRC of the content."""
    length = len(batch) - LOG_OVERHEAD_BYTES
    HEADER_LAYOUT.pack_into(batch, 0, *header._replace(batch_length=length))
    CRC_LAYOUT.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]))
