"""Messages of magic 0 and 1: written by releases before 0.11, and kept by later ones.

A message is offset (8 bytes), size (4), CRC-32 (4), magic (1), attributes (1), from magic 1 on a
time (8), then key and value with lengths of 4 bytes. The value of a compressed message holds other
messages; its own offset is that of the last one, and from magic 1 on the offsets within it count
from its first. There are no epochs, producers, transactions or headers. Sources: Kafka's protocol
guide ("Message sets"), KIP-31, KIP-32, KAFKA-3160 for the frames of LZ4.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import lz4.frame
from kafka.codec import gzip_decode, lz4_decode, snappy_decode

from urteil.harness.clients.payload import LOG_APPEND_TIME, Headers

NO_TIME, NO_EPOCH = -1, -1
_HEAD, _TIME, _LENGTH = struct.Struct(">qiIbb"), struct.Struct(">q"), struct.Struct(">i")
_OVERHEAD, _CRC_FROM = 12, 16
_CODEC, _BROKER_TIME = 0x07, 0x08
_CREATE_TIME = 0
_LZ4 = 3
_FRAME_HEAD = 7
"""The size of a frame's head with its checksum, without a content size (8) or a dictionary (4)."""
_DECODERS = {1: gzip_decode, 2: snappy_decode, _LZ4: lz4_decode}
SMALLEST = (_HEAD.size + 2 * _LENGTH.size, _HEAD.size + _TIME.size + 2 * _LENGTH.size)
"""The size in bytes of the smallest message of magic 0 and of magic 1."""


@dataclass(frozen=True, slots=True)
class OldRecord:
    """A message without nested ones; without `timestamp` in magic 0."""

    offset: int
    timestamp: int | None
    timestamp_type: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class _Message:
    record: OldRecord
    magic: int
    codec: int


def crc_holds(message: memoryview) -> bool:
    """Whether a message's checksum is correct. It covers all messages within it."""
    return zlib.crc32(message[_CRC_FROM:]) == int.from_bytes(message[_OVERHEAD:_CRC_FROM], "big")


def time_of(message: memoryview) -> int:
    """A message's own time; for a compressed one the largest within it."""
    is_timed = _HEAD.unpack_from(message)[3] > 0
    return int(_TIME.unpack_from(message, _HEAD.size)[0]) if is_timed else NO_TIME


def records(message: memoryview) -> list[OldRecord]:
    """The record of a message, or all records of a compressed one.

    Raises ValueError, or an error of its codec, for inconsistent bytes.
    """
    (outer,) = _messages(message)
    if not outer.codec:
        return [outer.record]
    inner = list(_messages(memoryview(_plain(outer))))
    if not inner or any(message.codec for message in inner):
        raise ValueError("a compressed message holds no messages, or compressed ones")
    last = outer.record.offset
    shift = last - inner[-1].record.offset if outer.magic else 0
    has_broker_time = outer.magic and outer.record.timestamp_type == LOG_APPEND_TIME
    batch_records = []
    for inner_message in inner:
        record = replace(inner_message.record, offset=inner_message.record.offset + shift)
        if has_broker_time and inner_message.magic:
            time_ms, kind = outer.record.timestamp, LOG_APPEND_TIME
            record = replace(record, timestamp=time_ms, timestamp_type=kind)
        batch_records.append(record)
    offsets = [record.offset for record in batch_records]
    if offsets != sorted(set(offsets)) or offsets[0] < 0 or offsets[-1] != last:
        raise ValueError(f"the messages within it have the offsets {offsets[0]} to {offsets[-1]}")
    return batch_records


def _messages(data: memoryview) -> Iterator[_Message]:
    at = 0
    while at < len(data):
        offset, size, _, magic, attributes = _HEAD.unpack_from(data, at)
        end = at + _OVERHEAD + size
        if magic not in (0, 1) or size + _OVERHEAD < SMALLEST[magic] or end > len(data):
            raise ValueError(f"no message at {at} (length {size}, magic {magic})")
        message = data[at:end]
        if not crc_holds(message):
            raise ValueError(f"the checksum of the message at offset {offset} does not hold")
        yield _message(message, offset, magic, attributes)
        at = end


def _message(message: memoryview, offset: int, magic: int, attributes: int) -> _Message:
    key, at = _field(message, _HEAD.size + _TIME.size * magic)
    value, at = _field(message, at)
    if at != len(message):
        raise ValueError(f"the message at offset {offset} has {len(message) - at} bytes too many")
    if magic:
        kind = LOG_APPEND_TIME if attributes & _BROKER_TIME else _CREATE_TIME
        record = OldRecord(offset, time_of(message), kind, key, value)
    else:
        record = OldRecord(offset, None, None, key, value)
    return _Message(record, magic, attributes & _CODEC)


def _field(message: memoryview, at: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(message, at)
    at += _LENGTH.size
    if length < 0:
        return None, at
    if at + length > len(message):
        raise ValueError(f"a field of {length} bytes where {len(message) - at} are left")
    return bytes(message[at : at + length]), at + length


def _plain(wrapper: _Message) -> bytes:
    decode = _DECODERS.get(wrapper.codec)
    if decode is None or wrapper.record.value is None:
        raise ValueError(f"a compressed message without a value, or of codec {wrapper.codec}")
    value = wrapper.record.value
    if wrapper.codec == _LZ4 and not wrapper.magic:
        value = _fix_lz4_checksum(value)
    return bytes(decode(value))


def _fix_lz4_checksum(frame: bytes) -> bytes:
    """A frame of magic 0 with the checksum that LZ4 requires for its header. Old clients included
    the frame's magic number in the hash."""
    size = _FRAME_HEAD
    if len(frame) > size:
        size += (8 if frame[4] & 0x08 else 0) + (4 if frame[4] & 0x01 else 0)
    checksum = _checksum(frame[: size - 1])
    return frame[: size - 1] + checksum + frame[size:]


@cache
def _checksum(head: bytes) -> bytes:
    for checksum in range(256):
        checksum_byte = bytes([checksum])
        try:
            lz4.frame.get_frame_info(head + checksum_byte)
        except RuntimeError:
            continue
        return checksum_byte
    raise ValueError("a frame of LZ4 without a head")
