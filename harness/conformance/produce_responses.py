"""More questions about producers: what they are told, what they are refused, and that it is not
there then."""

from __future__ import annotations

import time

from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

from urteil.harness.conformance.question import Brokers, Question, awaited, check, name_of, names
from urteil.harness.conformance.records import (
    BASE_MS,
    LATEST,
    appended,
    batch,
    fetch,
    led,
    list_offset,
    parts_of,
    produce,
)
from urteil.harness.protocol.produce_requests import single_record_batch

Told = tuple[int, str]
CREATED, STAMPED = ("CreateTime", "LogAppendTime")
NEAR_MS = 600_000
"""Brokers' clocks are not further from ours."""


def _sequences(brokers: Brokers, name: str) -> Told:
    """An idempotent producer's first batch, its second, the first one again, one too early, then
    two of its next epoch of which one is too early, and one of the epoch before (KIP-98)."""
    leader, _ = led(brokers, name)
    given = brokers.ask(
        leader, InitProducerIdRequest[0](transactional_id=None, transaction_timeout_ms=1)
    )
    check("InitProducerId", given.error_code)
    told = []
    for epoch, sequence in ((0, 0), (0, 1), (0, 0), (0, 5), (1, 3), (1, 0), (0, 2)):
        data = single_record_batch(
            b"k", b"v", BASE_MS, producer_id=given.producer_id, epoch=epoch, sequence=sequence
        )
        part = appended(produce(brokers, leader, name, 0, data))
        told.append(name_of(part.error_code) if part.error_code else str(part.base_offset))
    return leader, f"{' '.join(told)}, {list_offset(brokers, leader, name, LATEST).offset}"


def _acknowledged(brokers: Brokers, name: str) -> Told:
    """What is told of batches to a topic whose records keep their times, and to one where the
    broker sets them."""
    leader, told = brokers.nodes[0], []
    for kind in (CREATED, STAMPED):
        topic = f"{name}-{kind}"
        brokers.create(topic, [[leader]], message_timestamp_type=kind)
        now_ms = time.time() * 1_000
        parts = [appended(produce(brokers, leader, topic, 0, batch(b"0", b"1"))) for _ in range(2)]
        check("Produce", max(part.error_code for part in parts))
        (read,) = parts_of(fetch(brokers, leader, topic, {0: 0}))
        stamp_ms = parts[1].log_append_time_ms
        stamp = "now" if abs(stamp_ms - now_ms) < NEAR_MS else str(stamp_ms)
        found_ms = list_offset(brokers, leader, topic, BASE_MS).timestamp
        found = "now" if abs(found_ms - now_ms) < NEAR_MS else str(found_ms - BASE_MS)
        offsets = [(part.base_offset, part.log_start_offset) for part in parts]
        told.append(f"{offsets} {stamp} {found} {read.high_watermark}")
    return leader, ", ".join(told)


def _nowhere(brokers: Brokers, name: str) -> Told:
    leader, _ = led(brokers, name)
    places = ((name, 1), (f"{name}-never", 0))
    told = [appended(produce(brokers, leader, *place, batch(b"0"))).error_code for place in places]
    return leader, names(told)


def _unacknowledged(brokers: Brokers, name: str) -> Told:
    """With acks=0 nothing is answered, and what comes after it is; the connection ends where the
    batch is refused."""
    leader, follower = led(brokers, name)
    kinds = ProduceRequest.TopicProduceData
    parts = [kinds.PartitionProduceData(index=0, records=batch(b"0"))]
    request = ProduceRequest[8](
        transactional_id=None, acks=0, timeout_ms=2_000,
        topic_data=[kinds(name=name, partition_data=parts)],
    )  # fmt: skip
    told = []
    for node in (leader, follower):
        try:
            told.append(str(brokers.answers_after(node, request)))
        except ConnectionError:
            told.append("closed")
    end = awaited(lambda: str(list_offset(brokers, leader, name, LATEST).offset), "1")
    return leader, f"{', '.join(told)}, {end}"


PRODUCING = (
    Question(
        about="an idempotent producer's batches in turn, again, too early, and in two epochs",
        answer="0 1 0 OutOfOrderSequenceNumber OutOfOrderSequenceNumber 2 InvalidProducerEpoch, 3",
        ask=_sequences,
    ),
    Question(
        about="where and when two batches are told to be, with their own times and the broker's",
        answer="[(0, 0), (2, 0)] -1 0 4, [(0, 0), (2, 0)] now now 4",
        ask=_acknowledged,
    ),
    Question(
        about="records for a partition that there is not, and a topic",
        answer="UnknownTopicOrPartition, UnknownTopicOrPartition",
        ask=_nowhere,
    ),
    Question(
        about="acks=0, to who leads and to who does not",
        answer="True, closed, 1",
        ask=_unacknowledged,
    ),
)
