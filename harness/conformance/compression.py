"""Questions about the compression of batches, to the leader of a topic with `compression.type`."""

from __future__ import annotations

import struct

import pyarrow as pa

from urteil.harness.conformance.question import BrokerAnswer, Brokers, Question
from urteil.harness.conformance.records import fetch, fetched_partitions, make_batch, write_batches

CODECS = ("uncompressed", "gzip", "snappy", "lz4", "zstd")
"""By their number in a batch's attributes."""
LENGTH_AT, ATTRIBUTES_AT, HEADER = 8, 21, 61
XERIAL, XERIAL_BYTES = b"\x82SNAPPY\0", 16


def _decompress(codec: str, body: bytes) -> bytes:
    """Decompress. ValueError (the base of pyarrow's errors) for an invalid frame."""
    if codec == "uncompressed":
        return body
    if codec != "snappy":
        with pa.CompressedInputStream(pa.BufferReader(body), codec) as stream:
            return bytes(stream.read())
    if not body.startswith(XERIAL):
        raise ValueError("snappy without its frame")
    result, at = b"", XERIAL_BYTES
    while at < len(body):
        (size,) = struct.unpack_from(">i", body, at)
        block = body[at + 4 : at + 4 + size]
        result += pa.Codec(codec).decompress(block, _read_size(block), asbytes=True)
        at += 4 + size
    return result


def _read_size(block: bytes) -> int:
    """The uncompressed size at the begin of a snappy block, seven bits at a time."""
    size = shift = 0
    for byte in block:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return size


def _decompress_batches(data: bytes) -> list[tuple[str, bytes]]:
    """Codec and decompressed records of each batch."""
    results = []
    while len(data) >= HEADER:
        size = 12 + struct.unpack_from(">i", data, LENGTH_AT)[0]
        codec = CODECS[struct.unpack_from(">h", data, ATTRIBUTES_AT)[0] & 7]
        results.append((codec, _decompress(codec, data[HEADER:size])))
        data = data[size:]
    return results


def _recompress(brokers: Brokers, name: str) -> BrokerAnswer:
    """Write uncompressed records to a topic of each codec, and write what was read there to an
    uncompressed topic. Records without keys, with empty values, or without."""
    leader, sent = brokers.nodes[0], make_batch(b"", None, b"last" * 100)
    plain = f"{name}-plain"
    brokers.create(plain, [[leader]], compression_type="uncompressed")
    results = []
    for codec in CODECS[1:]:
        topic = f"{name}-{codec}"
        brokers.create(topic, [[leader]], compression_type=codec)
        write_batches(brokers, leader, topic, sent)
        data = bytes(fetched_partitions(fetch(brokers, leader, topic, {0: 0}))[0].records or b"")
        results += _decompress_batches(data)
        write_batches(brokers, leader, plain, data)
    data = bytes(fetched_partitions(fetch(brokers, leader, plain, {0: 0}))[0].records or b"")
    results += _decompress_batches(data)
    codecs = " ".join(codec for codec, _ in results)
    same = all(body == sent[HEADER:] for _, body in results)
    return leader, f"{codecs}, {'as they were' if same else 'others'}"


REPACKED = " ".join([*CODECS[1:], *[CODECS[0]] * 4]) + ", as they were"

CODED = (
    Question(
        about="records in the codecs of their topics (compression.type), and "
        "uncompressed by another topic",
        answer=REPACKED,
        ask=_recompress,
    ),
)
