"""Validation and conversion of appends: keys, times, codecs; the log as a consumer reads it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.fetching import fetch
from tests.conformance.questions.delete_records import request as deletion
from tests.conformance.records import HOUR_MS, NOW_MS, batch, message, produce
from tests.conformance.side import Side
from urteil.broker.wire.batches import (
    Compression,
    build_batch,
    iter_batches,
    iter_records,
    set_timestamps,
)
from urteil.broker.wire.compression import compress
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import ListOffsetsRequest

CODECS = ["uncompressed", "gzip", "snappy", "lz4", "zstd"]
GOOD, OLD, NEW = NOW_MS, NOW_MS - 86_400_000, NOW_MS + 86_400_000


def send(side: Side, version: int, topic: str, records: bytes) -> Any:
    """The answer for one partition, sentences aside."""
    (partition,) = side.ask(produce(topic, records), version)["responses"][0]["partition_responses"]
    appended = partition["log_append_time_ms"]
    partition["log_append_time_ms"] = "a time" if appended > NOW_MS - 600_000 else appended
    return partition


def kept(side: Side, topic: str, offset: int = 0) -> Any:
    """What the log holds from an offset on: headers, and records as they are read."""
    answer = fetch(side, 11, topic, [{"fetch_offset": offset}])
    data = answer["responses"][0]["partitions"][0]["records"]
    rows = []
    for header, part in iter_batches(data):
        stamped = header.timestamp_type == 1
        rows.append(
            {
                "header": header._replace(
                    batch_length=0,
                    crc=0,
                    max_timestamp=0 if stamped else header.max_timestamp,
                )._asdict(),
                "records": [
                    (r.offset, 0 if stamped else r.timestamp_ms, r.key, r.value, r.headers)
                    for r in iter_records(part)
                ],
                "bytes": "compressed" if header.compression or stamped else bytes(part),
            }
        )
    return rows


def records_of(*times: int, keyless: tuple[int, ...] = ()) -> bytes:
    return build_batch(
        [(None if n in keyless else b"k", b"v", (), ms) for n, ms in enumerate(times)]
    )


def saying(newest_ms: int, records: bytes) -> bytes:
    """The batch with another newest time in its header, as old versions of Sarama write -1."""
    changed = bytearray(records)
    set_timestamps(changed, newest_ms, of_broker=False)
    return bytes(changed)


def at_time(topic: str, ms: int) -> ListOffsetsRequest:
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=ms)
    asked = ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])
    return ListOffsetsRequest(replica_id=-1, topics=[asked])


FAULTS: dict[str, tuple[dict[str, str], bytes]] = {
    "keyless": ({"cleanup.policy": "compact"}, records_of(GOOD, GOOD, GOOD, keyless=(0, 2))),
    "many keyless": ({"cleanup.policy": "compact"}, records_of(*[GOOD] * 6, keyless=(1, 2, 3, 5))),
    "compact and delete": (
        {"cleanup.policy": "compact,delete"}, records_of(GOOD, GOOD, keyless=(1,)),
    ),
    "too old": ({"message.timestamp.before.max.ms": HOUR_MS}, records_of(OLD, GOOD, OLD)),
    "too new": ({"message.timestamp.after.max.ms": HOUR_MS}, records_of(GOOD, NEW, GOOD)),
    "too far": ({"message.timestamp.difference.max.ms": HOUR_MS}, records_of(OLD, GOOD, NEW)),
    "near enough": ({"message.timestamp.difference.max.ms": HOUR_MS}, records_of(GOOD)),
    "no time at all": ({"message.timestamp.before.max.ms": HOUR_MS}, records_of(-1, -1)),
    "before beats difference": (
        {"message.timestamp.difference.max.ms": "1", "message.timestamp.before.max.ms": "999999999",
         "message.timestamp.after.max.ms": "999999999"},
        records_of(OLD, NEW),
    ),
    "keyless and too old": (
        {"cleanup.policy": "compact", "message.timestamp.before.max.ms": HOUR_MS},
        records_of(OLD, GOOD, OLD, keyless=(0, 1)),
    ),
    "old in a topic of the broker's time": (
        {"message.timestamp.type": "LogAppendTime", "message.timestamp.before.max.ms": HOUR_MS},
        records_of(OLD, GOOD),
    ),
    "too new, which its header hides": (
        {"message.timestamp.after.max.ms": HOUR_MS}, saying(-1, records_of(GOOD, NEW, GOOD)),
    ),
    "grown too large": (
        {"compression.type": "uncompressed", "max.message.bytes": "1000"},
        batch([b"x" * 5000], compression=1),
    ),
    "shrunk, but too large before": (
        {"compression.type": "gzip", "max.message.bytes": "1000"}, batch([b"x" * 5000]),
    ),
    "larger than a segment": (
        {"segment.bytes": "2000", "compression.type": "uncompressed"},
        batch([b"x" * 5000], compression=1),
    ),
    "shrunk below a segment": (
        {"segment.bytes": "2000", "compression.type": "gzip"}, batch([b"x" * 5000]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FAULTS)
def test_invalid_records_are_reported_alike(pair: Pair, what: str) -> None:
    """Answers name the invalid records from version 8 on."""
    configs, records = FAULTS[what]
    name = pair.name("faults")
    pair.run_on_both(lambda side: side.create(name, configs=configs))
    for version in (3, 7, 8, 11):

        def question(side: Side, v: int = version) -> Any:
            answer = send(side, v, name, records)
            if not answer["record_errors"]:
                del answer["error_message"]  # for people; ours explains more often
            return answer

        pair.assert_same(question)


@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_every_codec_are_stored_alike(pair: Pair, codec: str) -> None:
    """Batches of every codec, in a topic of one: headers and records as they are read."""
    name = pair.name("codec")
    pair.run_on_both(lambda side: side.create(name, configs={"compression.type": codec}))
    for sent in Compression:
        data = batch([b"a" * 300, None, b"c"], compression=sent)
        pair.assert_same(lambda side, d=data: send(side, 9, name, d))  # type: ignore[misc]
    pair.assert_same(lambda side: kept(side, name))


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
@pytest.mark.parametrize(
    "said", [-1, GOOD - 5, GOOD + 1500, NEW], ids=["none", "too old", "between", "too new"]
)
def test_wrong_maximum_timestamp_of_a_batch_is_corrected(
    pair: Pair, said: int, codec: Compression
) -> None:
    """It is corrected, so that lookups by time find the records."""
    name = pair.name("newest")
    pair.run_on_both(lambda side: side.create(name))
    data = saying(said, batch([b"a", b"b", b"c"], compression=codec))
    pair.assert_same(lambda side: send(side, 9, name, data))
    pair.assert_same(lambda side: kept(side, name))
    for at_ms in (0, GOOD + 1, -3):
        request = at_time(name, at_ms)
        pair.assert_same(lambda side, sent=request: side.ask(sent, 7))  # type: ignore[misc]


def test_maximum_timestamp_without_timestamps_is_answered_alike(pair: Pair) -> None:
    name = pair.name("timeless")
    pair.run_on_both(lambda side: side.create(name))
    pair.assert_same(lambda side: side.ask(at_time(name, -3), 7))
    pair.run_on_both(lambda side: send(side, 2, name, message(1, 0, b"a", at_ms=-1) * 2))
    pair.assert_same(lambda side: side.ask(at_time(name, -3), 7))


def test_lookup_by_time_skips_deleted_segments(pair: Pair) -> None:
    """Apache Kafka searches only the first segment with such a time, also when it is deleted."""
    name = pair.name("deleted")
    pair.run_on_both(lambda side: side.create(name, configs={"segment.bytes": "100"}))
    pair.assert_same(lambda side: send(side, 9, name, batch([b"a" * 20], at_ms=NEW)))
    pair.assert_same(lambda side: send(side, 9, name, batch([b"b" * 20], at_ms=GOOD)))
    pair.assert_same(lambda side: side.ask(deletion((name, 0, 1)), 2))
    answers = [side.get(at_time(name, GOOD), 7) for side in (pair.theirs, pair.ours)]
    assert [answer.topics[0].partitions[0].offset for answer in answers] == [-1, 1]


WRONG_CRC = message(1, 0, b"a")[:-1] + b"b"
MIXTURES = {
    "a damaged one second": message(0, 0, b"a") + WRONG_CRC,
    "a large one second": message(0, 0, b"a") + message(1, 0, b"b" * 600),
    "a damaged one after a large one": message(0, 0, b"b" * 600) + WRONG_CRC,
}


@pytest.mark.parametrize("what", MIXTURES)
def test_invalid_message_precedes_mixed_formats_as_error(pair: Pair, what: str) -> None:
    name = pair.name("mixture")
    pair.run_on_both(lambda side: side.create(name, configs={"max.message.bytes": "500"}))
    pair.assert_same(lambda side: send(side, 2, name, MIXTURES[what]))


@pytest.mark.parametrize("compression", ["producer", "gzip"])
def test_producer_id_without_epoch_is_answered_alike(pair: Pair, compression: str) -> None:
    """Apache Kafka stumbles where it writes the batch anew."""
    name = pair.name("epochless")
    pair.run_on_both(lambda side: side.create(name, configs={"compression.type": compression}))
    data = batch([b"a"], producer_id=7000, producer_epoch=-1, base_sequence=0)
    pair.assert_same(lambda side: send(side, 9, name, data))


@pytest.mark.parametrize("inner", [(0, 1, 2), (5, 6, 7), (0, 2, 4)], ids=str)
def test_compressed_message_offset_may_be_last_or_zero(pair: Pair, inner: tuple[int, ...]) -> None:
    """Its own offset is that of its last message, a higher one, or 0."""
    name = pair.name("wrapped")
    pair.run_on_both(lambda side: side.create(name))
    packed = compress(Compression.GZIP, b"".join(message(1, at, b"v") for at in inner))
    for own in (-1, 0, 1, 2, 4, 7, 9):
        data = message(1, own, packed, attributes=Compression.GZIP)
        pair.assert_same(lambda side, sent=data: send(side, 2, name, sent))  # type: ignore[misc]


@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("setting", ["producer", "gzip"])
def test_timestamp_below_minus_one_is_answered_alike(pair: Pair, setting: str, magic: int) -> None:
    """Apache Kafka stumbles where it writes the batch anew."""
    name = pair.name("early")
    pair.run_on_both(lambda side: side.create(name, configs={"compression.type": setting}))
    data = message(1, 0, b"a", at_ms=-5) if magic == 1 else batch([b"a"], at_ms=-5)
    pair.assert_same(lambda side: send(side, 9 if magic == 2 else 2, name, data))


@pytest.mark.parametrize("compression", ["producer", "gzip"])
def test_log_append_time_is_stored_alike(pair: Pair, compression: str) -> None:
    name = pair.name("stamped")
    configs = {"message.timestamp.type": "LogAppendTime", "compression.type": compression}
    pair.run_on_both(lambda side: side.create(name, configs=configs))
    for data in (batch([b"a", b"b"]), batch([b"a"], compression=1), batch([b"a"], at_ms=-1)):
        pair.assert_same(lambda side, d=data: send(side, 9, name, d))  # type: ignore[misc]
    for data in (message(0, 0, b"a"), message(1, 0, b"a")):
        pair.assert_same(lambda side, d=data: send(side, 2, name, d))  # type: ignore[misc]
    pair.assert_same(lambda side: kept(side, name))


@pytest.mark.parametrize("version", [0, 3, 6])
def test_zstd_is_rejected_from_old_producers(pair: Pair, version: int) -> None:
    name = pair.name("zstd")
    pair.run_on_both(lambda side: side.create(name))
    data = batch([b"a"], compression=Compression.ZSTD)

    def question(side: Side) -> Any:
        answer = send(side, version, name, data)
        del answer["error_message"]
        return answer

    pair.assert_same(question)


@pytest.mark.parametrize("version", [0, 3, 9, 10, 12])
def test_zstd_topic_is_refused_to_old_consumers(pair: Pair, version: int) -> None:
    """Only where the topic's configuration chooses zstd, not where a producer does."""
    data = batch([b"a"], compression=Compression.ZSTD)
    for configs in ({"compression.type": "zstd"}, {}):
        name = pair.name("zstd-read")
        pair.run_on_both(lambda side, c=configs, n=name: side.create(n, configs=c))  # type: ignore[misc]
        pair.assert_same(lambda side, n=name: send(side, 9, n, data)["error_code"])  # type: ignore[misc]

        def question(side: Side, n: str = name) -> Any:
            answer = fetch(side, version, n, [{}])
            return answer["responses"][0]["partitions"][0]

        pair.assert_same(question)


def test_librdkafka_reads_every_codec_that_the_broker_encodes(pair: Pair) -> None:
    """librdkafka's own decoders, on every codec that ours encodes."""
    from confluent_kafka import Consumer, TopicPartition

    values = [b"%d" % n * 50 for n in range(500)]
    for codec in CODECS:
        name = pair.ours.create(pair.name("read"), configs={"compression.type": codec})
        assert send(pair.ours, 9, name, batch(values))["error_code"] == ErrorCode.NONE.name
        consumer = Consumer({"bootstrap.servers": pair.ours.bootstrap, "group.id": "none"})
        consumer.assign([TopicPartition(name, 0, 0)])
        read: list[Any] = []
        while len(read) < len(values):
            more = consumer.consume(len(values) - len(read), timeout=10)
            assert more, codec
            read += [message.value() for message in more]
        consumer.close()
        assert read == values
