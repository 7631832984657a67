"""Log compaction: both clusters retain the same batches.

The topic is written while it is not compacted, so that both clean the same segments, and at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.conftest import Pair
from tests.conformance.records import NOW_MS, produce
from tests.conformance.side import Side
from urteil.broker.wire.batch_header import DELETE_HORIZON
from urteil.broker.wire.batches import build_batch, iter_batches, iter_records
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest, IncrementalAlterConfigsRequest

TOPIC_RESOURCE, SET = 2, 0
DEADLINE_S = 40.0  # beyond the default back-off of 15 s, as standing clusters have it
SMALL = {"segment.bytes": "3000", "index.interval.bytes": "100"}
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}


def alter(side: Side, topic: str, configs: dict[str, str]) -> None:
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=TOPIC_RESOURCE,
                resource_name=topic,
                configs=[
                    IncrementalAlterConfigsRequest.AlterableConfig(
                        name=name, config_operation=SET, value=value
                    )
                    for name, value in configs.items()
                ],
            )
        ],
        validate_only=False,
    )
    answer = side.get(request, 1, to=side.controller())
    assert answer.responses[0].error_code == ErrorCode.NONE, answer


def batches(side: Side, topic: str) -> list[Any]:
    """All batches as served, without base timestamps, which depend on the time of cleaning."""
    batches: list[Any] = []
    offset = 0
    while True:
        data = _fetch(side, topic, offset)
        for header, batch in iter_batches(data, allow_partial_tail=True):
            if header.base_offset >= offset:
                offset = header.last_offset + 1
                plain = header._asdict()
                for name in ("base_timestamp", "batch_length", "crc"):
                    del plain[name]
                batches.append((plain, list(iter_records(batch))))
        if not data:
            return batches


def _fetch(side: Side, topic: str, offset: int) -> memoryview:
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[
            FetchRequest.FetchTopic(
                topic=topic,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                ],
            )
        ],
    )
    part = side.get(request, 11).responses[0].partitions[0]
    assert part.error_code == ErrorCode.NONE, part
    return memoryview(part.records or b"")


def keys(rows: Sequence[Any]) -> list[bytes | None]:
    return [record.key for _, records in rows for record in records]


def send(pair: Pair, topic: str, *pairs: tuple[bytes | None, bytes | None], **more: Any) -> None:
    at_ms = more.pop("at_ms", NOW_MS)
    data = build_batch(
        [(key, value, (("h", b"v"),), at_ms + n) for n, (key, value) in enumerate(pairs)], **more
    )

    def do(side: Side) -> None:
        answer = side.get(produce(topic, data), 9)
        error = answer.responses[0].partition_responses[0].error_code
        assert error == ErrorCode.NONE, (side.name, ErrorCode(error))

    pair.run_on_both(do)


def fill(pair: Pair, topic: str) -> None:
    """Every kind of batch: five codecs, keys that come again, tombstones, records without a key,
    producers whose last batch is needed, whole batches that are superseded."""
    for n in range(60):
        send(
            pair,
            topic,
            *((b"k%d" % (n * m % 17), b"%d-%d" % (n, m) + b"x" * 30) for m in range(1, n % 5 + 2)),
            at_ms=NOW_MS + (n * 7 % 60) * 1000,
            compression=n % 5,
        )
        if n % 10 == 3:
            send(pair, topic, (b"t%d" % (n % 3), b"v"), (b"k%d" % (n % 17), None))
        if n % 10 == 5:
            send(pair, topic, (None, b"no key"), (b"t%d" % (n % 3), None), compression=n % 5)
        if n % 10 == 7:
            send(pair, topic, (b"k1", b"p"), (b"k2", b"p"), producer_id=7000 + n % 20,
                 producer_epoch=1, base_sequence=n // 20 * 2)  # fmt: skip


def one_each(side: Side, topic: str, clean_to: int) -> bool:
    """Whether no key is there twice before this offset."""
    cleaned = [each for each in batches(side, topic) if each[0]["base_offset"] < clean_to]
    return len(set(keys(cleaned))) == len(keys(cleaned))


def compacted(pair: Pair, topic: str, clean_to: int) -> list[Any]:
    """What both hold, once both have cleaned that far."""
    pair.run_on_both(
        lambda side: side.until(lambda: one_each(side, topic, clean_to), deadline_s=DEADLINE_S)
    )
    return list(pair.assert_same(lambda side: batches(side, topic)))


def roll(pair: Pair, topic: str, key: bytes) -> None:
    """End the segment with the next batch."""
    send(pair, topic, (key, b"x" * 2900))


def test_compaction_retains_the_same_batches(pair: Pair) -> None:
    topic = pair.name("compacted")
    pair.run_on_both(lambda side: side.create(topic, configs=SMALL))
    fill(pair, topic)
    roll(pair, topic, b"end")
    before = pair.assert_same(lambda side: batches(side, topic))
    clean_to = before[-1][0]["base_offset"]
    pair.run_on_both(lambda side: alter(side, topic, {**COMPACT, "delete.retention.ms": "0"}))
    cleaned = compacted(pair, topic, clean_to)
    assert None not in keys(cleaned)
    assert 20 < len(keys(cleaned)) < len(keys(before)) / 4
    assert any(not records for _, records in cleaned), "the last batch of a producer stays, empty"
    tombstones = [record for _, each in cleaned for record in each if record.value is None]
    assert tombstones, "they stay until they were seen clean"

    # what is over by now goes with the next cleaning, and newer tombstones get their time
    send(pair, topic, (b"k1", b"new"), (b"k2", None))
    roll(pair, topic, b"end")
    gone = {tombstone.offset for tombstone in tombstones}
    pair.run_on_both(lambda side: side.until(lambda: _next_are_timed(side, topic, gone),
                                      deadline_s=DEADLINE_S))  # fmt: skip
    pair.assert_same(lambda side: batches(side, topic))


def _next_are_timed(side: Side, topic: str, gone: set[int]) -> bool:
    left = [
        (record.offset, bool(header["attributes"] & DELETE_HORIZON))
        for header, records in batches(side, topic)
        for record in records
        if record.value is None
    ]
    return bool(left) and all(timed and offset not in gone for offset, timed in left)
