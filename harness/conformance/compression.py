"""Questions about the codecs of batches, to who leads a topic that has one."""

from __future__ import annotations

import struct

import pyarrow as pa

from urteil.harness.conformance.question import Brokers, Question
from urteil.harness.conformance.records import batch, fetch, parts_of, written

Told = tuple[int, str]
CODECS = ("uncompressed", "gzip", "snappy", "lz4", "zstd")
"""By their number in a batch's attributes."""
LENGTH_AT, ATTRIBUTES_AT, HEADER = 8, 21, 61
XERIAL, XERIAL_BYTES = b"\x82SNAPPY\0", 16


def _unpacked(codec: str, body: bytes) -> bytes:
    """Raises ValueError (of which pyarrow's own errors are) for what is no such frame."""
    if codec == "uncompressed":
        return body
    if codec != "snappy":
        with pa.CompressedInputStream(pa.BufferReader(body), codec) as stream:
            return bytes(stream.read())
    if not body.startswith(XERIAL):
        raise ValueError("snappy without its frame")
    found, at = b"", XERIAL_BYTES
    while at < len(body):
        (size,) = struct.unpack_from(">i", body, at)
        block = body[at + 4 : at + 4 + size]
        found += pa.Codec(codec).decompress(block, _size_of(block), asbytes=True)
        at += 4 + size
    return found


def _size_of(block: bytes) -> int:
    """What a block of snappy begins with: how many bytes it has unpacked, seven bits at a time."""
    size = shift = 0
    for byte in block:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return size


def _batches(data: bytes) -> list[tuple[str, bytes]]:
    """Codec and unpacked records of each batch."""
    found = []
    while len(data) >= HEADER:
        size = 12 + struct.unpack_from(">i", data, LENGTH_AT)[0]
        codec = CODECS[struct.unpack_from(">h", data, ATTRIBUTES_AT)[0] & 7]
        found.append((codec, _unpacked(codec, data[HEADER:size])))
        data = data[size:]
    return found


def _repacked(brokers: Brokers, name: str) -> Told:
    """Of each codec a topic is given records without one; what it has of them, a topic without
    is given then. Records without keys, with empty values, or none."""
    leader, sent = brokers.nodes[0], batch(b"", None, b"last" * 100)
    plain = f"{name}-plain"
    brokers.create(plain, [[leader]], compression_type="uncompressed")
    told = []
    for codec in CODECS[1:]:
        topic = f"{name}-{codec}"
        brokers.create(topic, [[leader]], compression_type=codec)
        written(brokers, leader, topic, sent)
        data = bytes(parts_of(fetch(brokers, leader, topic, {0: 0}))[0].records or b"")
        told += _batches(data)
        written(brokers, leader, plain, data)
    data = bytes(parts_of(fetch(brokers, leader, plain, {0: 0}))[0].records or b"")
    told += _batches(data)
    codecs = " ".join(codec for codec, _ in told)
    same = all(body == sent[HEADER:] for _, body in told)
    return leader, f"{codecs}, {'as they were' if same else 'others'}"


REPACKED = " ".join([*CODECS[1:], *[CODECS[0]] * 4]) + ", as they were"

CODED = (
    Question(
        about="records in the codecs of their topics (compression.type), and unpacked by another",
        answer=REPACKED,
        ask=_repacked,
    ),
)
