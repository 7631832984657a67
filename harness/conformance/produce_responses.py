"""Questions about responses to producers, and about rejected batches, which must not be written."""

from __future__ import annotations

from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

from urteil.harness.conformance.question import (
    BrokerAnswer,
    Brokers,
    Question,
    await_value,
    check,
    name_of,
    names,
)
from urteil.harness.conformance.records import (
    BASE_MS,
    LATEST,
    create_led_topic,
    fetch,
    fetched_partitions,
    make_batch,
    produce,
    produced_partition,
    read_offset,
)
from urteil.harness.protocol.produce_requests import single_record_batch

CREATED, STAMPED = ("CreateTime", "LogAppendTime")
NEAR_MS = 600_000
"""The clocks of brokers differ less than this."""


def _produce_sequences(brokers: Brokers, name: str) -> BrokerAnswer:
    """An idempotent producer's first batch, its second, the first again, one too early, two of its
    next epoch of which one is too early, and one of the former epoch (KIP-98)."""
    leader, _ = create_led_topic(brokers, name)
    given = brokers.send(
        leader, InitProducerIdRequest[0](transactional_id=None, transaction_timeout_ms=1)
    )
    check("InitProducerId", given.error_code)
    results = []
    for epoch, sequence in ((0, 0), (0, 1), (0, 0), (0, 5), (1, 3), (1, 0), (0, 2)):
        data = single_record_batch(
            b"k", b"v", BASE_MS, producer_id=given.producer_id, epoch=epoch, sequence=sequence
        )
        part = produced_partition(produce(brokers, leader, name, 0, data))
        results.append(name_of(part.error_code) if part.error_code else str(part.base_offset))
    return leader, f"{' '.join(results)}, {read_offset(brokers, leader, name, LATEST).offset}"


def _read_timestamps(brokers: Brokers, name: str) -> BrokerAnswer:
    """Responses for a topic with CreateTime and for one with LogAppendTime."""
    leader, results = brokers.nodes[0], []
    for kind in (CREATED, STAMPED):
        topic = f"{name}-{kind}"
        brokers.create(topic, [[leader]], message_timestamp_type=kind, retention_ms="-1")
        now_ms = brokers.environment.wall_ms()
        produced_partitions = [
            produced_partition(produce(brokers, leader, topic, 0, make_batch(b"0", b"1")))
            for _ in range(2)
        ]
        check("Produce", max(part.error_code for part in produced_partitions))
        (read,) = fetched_partitions(fetch(brokers, leader, topic, {0: 0}))
        stamp_ms = produced_partitions[1].log_append_time_ms
        stamp = "now" if abs(stamp_ms - now_ms) < NEAR_MS else str(stamp_ms)
        found_ms = read_offset(brokers, leader, topic, BASE_MS).timestamp
        result = "now" if abs(found_ms - now_ms) < NEAR_MS else str(found_ms - BASE_MS)
        offsets = [(part.base_offset, part.log_start_offset) for part in produced_partitions]
        results.append(f"{offsets} {stamp} {result} {read.high_watermark}")
    return leader, ", ".join(results)


def _produce_nowhere(brokers: Brokers, name: str) -> BrokerAnswer:
    leader, _ = create_led_topic(brokers, name)
    places = ((name, 1), (f"{name}-never", 0))
    errors = [
        produced_partition(produce(brokers, leader, *place, make_batch(b"0"))).error_code
        for place in places
    ]
    return leader, names(errors)


def _produce_without_acks(brokers: Brokers, name: str) -> BrokerAnswer:
    """With acks=0 there is no response, and the next request gets one; the broker closes the
    connection if it rejects the batch."""
    leader, follower = create_led_topic(brokers, name)
    kinds = ProduceRequest.TopicProduceData
    partition_data = [kinds.PartitionProduceData(index=0, records=make_batch(b"0"))]
    request = ProduceRequest[8](
        transactional_id=None, acks=0, timeout_ms=2_000,
        topic_data=[kinds(name=name, partition_data=partition_data)],
    )  # fmt: skip
    results = []
    for node in (leader, follower):
        try:
            results.append(str(brokers.answers_after(node, request)))
        except ConnectionError:
            results.append("closed")
    end = await_value(brokers, lambda: str(read_offset(brokers, leader, name, LATEST).offset), "1")
    return leader, f"{', '.join(results)}, {end}"


PRODUCING = (
    Question(
        about="an idempotent producer's batches: in order, repeated, too early, and in two epochs",
        answer="0 1 0 OutOfOrderSequenceNumber OutOfOrderSequenceNumber 2 InvalidProducerEpoch, 3",
        ask=_produce_sequences,
    ),
    Question(
        about="offsets and timestamps of two batches, with CreateTime and with LogAppendTime",
        answer="[(0, 0), (2, 0)] -1 0 4, [(0, 0), (2, 0)] now now 4",
        ask=_read_timestamps,
    ),
    Question(
        about="records for a missing partition, and for a missing topic",
        answer="UnknownTopicOrPartition, UnknownTopicOrPartition",
        ask=_produce_nowhere,
    ),
    Question(
        about="acks=0 to the leader and to a follower",
        answer="True, closed, 1",
        ask=_produce_without_acks,
    ),
)
