"""Messages of magic 0 and 1 from old producers and to old consumers."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.fetching import fetch
from tests.conformance.records import HOUR_MS, NOW_MS, batch, message
from tests.conformance.side import Side
from tests.conformance.test_append_validation import kept, send
from urteil.broker.wire import lz4_frame
from urteil.broker.wire.batches import Compression
from urteil.broker.wire.compression import compress

OLD_CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4]


def entry(
    magic: int,
    offset: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    attributes: int = 0,
    at_ms: int = NOW_MS,
) -> bytes:
    """One message, with any attributes."""
    body = struct.pack(">bb", magic, attributes)
    if magic:
        body += struct.pack(">q", at_ms)
    for content in (key, value):
        body += struct.pack(">i", -1 if content is None else len(content)) + (content or b"")
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(message)) + message


def compressed_message(
    magic: int, codec: int, values: Sequence[bytes], *, first: int = 0, **more: Any
) -> bytes:
    """A compressed message with messages in it, whose offsets count from `first`."""
    inner = b"".join(message(magic, first + n, value) for n, value in enumerate(values))
    value = compress(codec, inner)
    if magic == 0 and codec == Compression.LZ4:
        value = lz4_frame.set_kafka_checksum(value)
    return entry(magic, first + len(values) - 1, value, attributes=codec, **more)


def produce_answer(side: Side, version: int, topic: str, records: bytes) -> Any:
    answer = send(side, version, topic, records)
    del answer["error_message"]
    return answer


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    name = pair.name("old-formats")
    pair.run_on_both(lambda side: side.create(name))
    return name


@pytest.mark.parametrize("codec", OLD_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_messages_of_old_formats_are_stored_alike(
    pair: Pair, topic: str, magic: int, codec: int
) -> None:
    """Inner offsets may start anywhere: the leader rewrites them."""
    for first in (0, 7):
        records = compressed_message(magic, codec, [b"a" * 30, b"b"], first=first)
        for version in (0, 2):
            answer = pair.assert_same(
                lambda side, v=version, r=records: produce_answer(side, v, topic, r)
            )  # type: ignore[misc]
    end = answer["base_offset"]
    pair.assert_same(lambda side: kept(side, topic, end))


WRONG = {
    "two compressed": compressed_message(1, 1, [b"a"]) + compressed_message(1, 1, [b"b"]),
    "compressed and not": compressed_message(1, 1, [b"a"]) + message(1, 1, b"b"),
    "not and compressed": message(1, 0, b"a") + compressed_message(1, 1, [b"b"], first=1),
    "two formats": message(0, 0, b"a") + message(1, 1, b"b"),
    "old and new": message(1, 0, b"a") + batch([b"b"]),
    "new and old": batch([b"a"]) + message(1, 0, b"b"),
    "another format inside": entry(1, 0, compress(1, message(0, 0, b"a")), attributes=1),
    "no value": entry(1, 0, None, attributes=1),
    "nothing inside": entry(1, 0, compress(1, b""), attributes=1),
    "broken crc": message(1, 0, b"a")[:-1] + b"b",
    "broken crc inside": entry(1, 0, compress(1, message(1, 0, b"a")[:-1] + b"b"), attributes=1),
    "the broker's time": entry(1, 0, b"a", attributes=8),
    "offsets all the same": message(1, 5, b"a") + message(1, 5, b"b"),
    "no key, no value": entry(1, 0, None),
    "no time": entry(1, 0, b"a", at_ms=-1),
}


@pytest.mark.parametrize("what", WRONG)
def test_malformed_old_messages_are_answered_alike(pair: Pair, topic: str, what: str) -> None:
    for version in (0, 2):
        pair.assert_same(lambda side, v=version: produce_answer(side, v, topic, WRONG[what]))  # type: ignore[misc]


@pytest.mark.parametrize("magic", [0, 1])
def test_topic_requirements_apply_to_old_messages(pair: Pair, magic: int) -> None:
    """Keys, times and codecs as for new messages; messages of magic 0 have no time."""
    for configs in (
        {"cleanup.policy": "compact"},
        {"message.timestamp.before.max.ms": HOUR_MS},
        {"message.timestamp.type": "LogAppendTime"},
        {"compression.type": "lz4"},
        {"compression.type": "zstd"},
        {"max.message.bytes": "60"},
    ):
        name = pair.name("demanding")
        pair.run_on_both(lambda side, c=configs, n=name: side.create(n, configs=c))  # type: ignore[misc]
        old = NOW_MS - 86_400_000
        for records in (
            entry(magic, 0, b"a", key=b"k") + entry(magic, 1, b"b"),
            entry(magic, 0, b"a", key=b"k", at_ms=old),
            compressed_message(magic, 1, [b"a", b"b"], key=b"k"),
        ):
            pair.assert_same(lambda side, r=records, n=name: produce_answer(side, 2, n, r))  # type: ignore[misc]
        pair.assert_same(lambda side, n=name: kept(side, n))  # type: ignore[misc]


# -- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [Compression.NONE, *OLD_CODECS])
@pytest.mark.parametrize("version", [0, 2, 3])
def test_old_readers_get_down_converted_batches(pair: Pair, version: int, codec: int) -> None:
    """Three batches, from within them too: compressed ones come whole."""
    name = pair.name("old-readers")
    pair.run_on_both(lambda side: side.create(name))
    for n in range(3):
        data = batch([b"%d-%d" % (n, m) * 9 for m in range(3)], compression=codec)
        pair.assert_same(lambda side, d=data: produce_answer(side, 9, name, d))  # type: ignore[misc]
    for offset in (0, 1, 5, 8, 9):
        pair.assert_same(lambda side, o=offset: fetch(side, version, name, [{"fetch_offset": o}]))  # type: ignore[misc]
    if codec == Compression.NONE:
        for limit in (150, 300, 450):
            pair.assert_same(
                lambda side, n=limit: fetch(side, version, name, [{"partition_max_bytes": n}])  # type: ignore[misc]
            )


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_old_readers_get_log_append_times(pair: Pair, version: int) -> None:
    name = pair.name("stamped-old")
    pair.run_on_both(
        lambda side: side.create(name, configs={"message.timestamp.type": "LogAppendTime"})
    )
    pair.run_on_both(lambda side: produce_answer(side, 9, name, batch([b"a", b"b"])))

    def question(side: Side) -> Any:
        (partition,) = fetch(side, version, name, [{}])["responses"][0]["partitions"]
        return [(r[0], r[1] > 0, r[2:]) for r in partition["records"][:-1]]

    pair.assert_same(question)


@pytest.mark.parametrize("version", [0, 2, 3, 4])
def test_disabled_down_conversion_is_answered_alike(pair: Pair, version: int) -> None:
    name = pair.name("no-conversion")
    pair.run_on_both(
        lambda side: side.create(name, configs={"message.downconversion.enable": "false"})
    )
    pair.run_on_both(lambda side: produce_answer(side, 9, name, batch([b"a"])))
    for offset in (0, 1, 5):
        pair.assert_same(lambda side, o=offset: fetch(side, version, name, [{"fetch_offset": o}]))  # type: ignore[misc]


@pytest.mark.parametrize("version", [0, 3])
def test_zstd_batch_ends_the_answer_of_an_old_reader(pair: Pair, version: int) -> None:
    """A zstd batch is an error as the first one, else the answer ends before it."""
    name = pair.name("zstd-old")
    pair.run_on_both(lambda side: side.create(name))
    for codec in (0, Compression.ZSTD, 0):
        data = batch([b"a" * 50], compression=codec)
        pair.assert_same(lambda side, d=data: produce_answer(side, 9, name, d))  # type: ignore[misc]
    for offset in (0, 1, 2):
        pair.assert_same(lambda side, o=offset: fetch(side, version, name, [{"fetch_offset": o}]))  # type: ignore[misc]
