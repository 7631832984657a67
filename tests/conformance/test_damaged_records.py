"""Batches with a valid checksum and damaged records are rejected."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import crc32c
import pytest

from tests.conformance.conftest import Pair
from tests.conformance.records import NOW_MS, produce
from tests.conformance.side import Side
from urteil.broker.wire.batch_header import ATTRIBUTES_POSITION, CRC_POSITION, HEADER_BYTES
from urteil.broker.wire.batches import Compression, build_batch
from urteil.broker.wire.compression import compress

RECORDS = (
    (b"key", b"value", (("h1", b"a"),), NOW_MS),
    (None, b"", (), NOW_MS + 5),
    (b"k2", None, (("h2", None), ("x", b"")), NOW_MS + 3),
)
SOUND = build_batch(RECORDS)[HEADER_BYTES:]
MOVED = build_batch(RECORDS, offsets=(1, 2, 3))[HEADER_BYTES:]
OFFSETS = {place for place in range(len(SOUND)) if SOUND[place] != MOVED[place]}
PACKED = [codec for codec in Compression if codec]
STRICTER = {("NONE", "INVALID_RECORD"), ("UNKNOWN_SERVER_ERROR", "INVALID_RECORD")}
"""Apache Kafka takes no notice of the offset of a record that is not compressed, nor of the size of
one that is: it goes on where the record ends by itself, or stumbles there, as readers do."""


def with_records(codec: Compression, records: bytes) -> bytes:
    """The header of the sound batch over other bytes, all lengths and the checksum right."""
    batch = bytearray(build_batch(RECORDS, compression=codec)[:HEADER_BYTES]) + records
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">I", batch, CRC_POSITION, crc32c.crc32c(batch[ATTRIBUTES_POSITION:]))
    return bytes(batch)


def damaged(sound: bytes, step: int = 1) -> Iterator[tuple[int, bytes]]:
    """With one bit flipped, each or every so manieth, and in which byte."""
    for bit in range(0, 8 * len(sound), step):
        changed = bytearray(sound)
        changed[bit // 8] ^= 1 << bit % 8
        yield bit // 8, bytes(changed)


def append_result(side: Side, topic: str, batch: bytes) -> str:
    (partition,) = side.ask(produce(topic, batch, acks=1), 9)["responses"][0]["partition_responses"]
    return str(partition["error_code"])


def answers(pair: Pair, batches: Iterable[bytes]) -> set[tuple[str, str]]:
    """Apache Kafka's answers with ours."""
    topic = pair.name("damaged")
    pair.run_on_both(lambda side: side.create(topic))
    return {
        (append_result(pair.theirs, topic, batch), append_result(pair.ours, topic, batch))
        for batch in batches
    }


def test_damaged_uncompressed_records_are_rejected_alike(pair: Pair) -> None:
    every = [(at in OFFSETS, with_records(Compression.NONE, batch)) for at, batch in damaged(SOUND)]

    assert answers(pair, [batch for of_offset, batch in every if not of_offset]) == {
        ("NONE", "NONE"), ("INVALID_RECORD", "INVALID_RECORD")
    }  # fmt: skip
    offsets = answers(pair, [batch for of_offset, batch in every if of_offset])
    assert {ours for _, ours in offsets} == {"INVALID_RECORD"}


@pytest.mark.parametrize("codec", PACKED, ids=lambda codec: codec.name)
def test_records_damaged_before_compression_are_rejected_alike(
    pair: Pair, codec: Compression
) -> None:
    packed = [compress(codec, records) for _, records in damaged(SOUND, step=len(PACKED) - 1)]

    results = answers(pair, [with_records(codec, batch) for batch in packed])

    assert {theirs for theirs, _ in results} == {"NONE", "INVALID_RECORD", "UNKNOWN_SERVER_ERROR"}
    assert {answer for answer in results if answer[0] != answer[1]} <= STRICTER


@pytest.mark.parametrize("codec", PACKED, ids=lambda codec: codec.name)
def test_records_damaged_after_compression_are_rejected_alike(
    pair: Pair, codec: Compression
) -> None:
    """The error depends on how far a codec reads ahead."""
    packed = [batch for _, batch in damaged(compress(codec, SOUND), step=3)]

    results = answers(pair, [with_records(codec, batch) for batch in packed])

    assert {"NONE"} == {theirs for theirs, ours in results if ours == "NONE"}
    assert ("UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR") in results
