"""Questions about the compression of batches, to the leader of a topic with `compression.type`."""

from __future__ import annotations

import gzip
import struct
from functools import partial

from urteil.harness.conformance.question import BrokerAnswer, Brokers, Question
from urteil.harness.conformance.records import fetch, fetched_partitions, make_batch, write_batches

UNCOMPRESSED = "uncompressed"
CODECS = (UNCOMPRESSED, "gzip", "snappy", "lz4", "zstd")
"""By their number in a batch's attributes."""
LENGTH_AT, ATTRIBUTES_AT, HEADER = 8, 21, 61
XERIAL, XERIAL_BYTES = b"\x82SNAPPY\0", 16


def _decompress(codec: str, body: bytes) -> bytes:
    """Decompress. OSError or ValueError (the base of pyarrow's errors) for an invalid frame."""
    if codec == UNCOMPRESSED:
        return body
    if codec == "gzip":
        return gzip.decompress(body)
    import pyarrow as pa  # only here: the simulation has no pyarrow

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


def _recompress(codec: str, brokers: Brokers, name: str) -> BrokerAnswer:
    """Write uncompressed records to a topic of the codec, and write what was read there to an
    uncompressed topic. Records without keys, with empty values, or without."""
    leader, sent = brokers.nodes[0], make_batch(b"", None, b"last" * 100)
    results, data = [], sent
    for compression in (codec, UNCOMPRESSED):
        topic = f"{name}-{compression}"
        brokers.create(topic, [[leader]], compression_type=compression)
        write_batches(brokers, leader, topic, data)
        data = bytes(fetched_partitions(fetch(brokers, leader, topic, {0: 0}))[0].records or b"")
        results += _decompress_batches(data)
    codecs = " ".join(codec for codec, _ in results)
    same = all(body == sent[HEADER:] for _, body in results)
    return leader, f"{codecs}, {'as they were' if same else 'others'}"


CODED = tuple(
    Question(
        about=f"records in {codec}, the codec of their topic (compression.type), and "
        "uncompressed by another topic",
        answer=f"{codec} {UNCOMPRESSED}, as they were",
        ask=partial(_recompress, codec),
        unsimulated="" if codec == "gzip" else "the simulation has no pyarrow",
    )
    for codec in CODECS[1:]
)
