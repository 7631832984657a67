"""Questions about records to the leader of their partition, and to followers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import DeleteRecordsRequest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from urteil.harness.conformance.question import (
    BrokerAnswer,
    Brokers,
    Question,
    check,
    name_of,
    names,
)

LATEST, EARLIEST, NEWEST = -1, -2, -3
BASE_MS = 1_600_000_000_000
PREFIX = 16
"""Bytes of a batch that its broker writes: offset, length, epoch."""
WAIT_MS = 700
LONG_MS = 2_500
MOST = 1 << 20


def make_batch(
    *values: bytes | None,
    transactional: bool = False,
    producer: tuple[int, int] = (-1, -1),
    sequence: int = 0,
) -> bytes:
    """Records ten milliseconds apart, without keys, each with a header without value. `sequence` is
    used for transactional batches."""
    builder = DefaultRecordBatchBuilder(
        2, 0, transactional, *producer, sequence if transactional else -1, MOST
    )
    for number, value in enumerate(values):
        builder.append(number, BASE_MS + 10 * number, None, value, [("empty", None)])
    return bytes(builder.build())


def produce(
    brokers: Brokers,
    node: int,
    topic: str,
    partition: int,
    data: bytes,
    *,
    version: int = 8,
    transactional_id: str | None = None,
) -> Any:
    """The response of Produce with acks=all."""
    kinds = ProduceRequest.TopicProduceData
    partition_data = [kinds.PartitionProduceData(index=partition, records=data)]
    return brokers.send(
        node,
        ProduceRequest[version](
            transactional_id=transactional_id, acks=-1, timeout_ms=2_000,
            topic_data=[kinds(name=topic, partition_data=partition_data)],
        ),
    )  # fmt: skip


def produced_partition(response: Any) -> Any:
    """The partition of a Produce response."""
    return response.responses[0].partition_responses[0]


def write_batches(
    brokers: Brokers, node: int, topic: str, *batches: bytes, partition: int = 0
) -> None:
    for data in batches:
        part = produced_partition(produce(brokers, node, topic, partition, data))
        check("Produce", part.error_code)


def fetch(
    brokers: Brokers,
    node: int,
    topic: str,
    offsets: Mapping[int, int],
    *,
    epoch: int = -1,
    session: tuple[int, int] = (0, -1),
    forgotten: Sequence[int] = (),
    wait_ms: int = 0,
    least: int = 1,
    most: int = MOST,
    most_of_each: int = MOST,
    committed: bool = False,
    rack: str = "",
) -> Any:
    """The response of Fetch 11 from these offsets by partition."""
    kinds = FetchRequest
    requests = [
        kinds.FetchTopic.FetchPartition(
            partition=p, current_leader_epoch=epoch, fetch_offset=offset, log_start_offset=-1,
            partition_max_bytes=most_of_each,
        )
        for p, offset in offsets.items()
    ]  # fmt: skip
    result = [kinds.ForgottenTopic(topic=topic, partitions=list(forgotten))] if forgotten else []
    return brokers.send(
        node,
        kinds[11](
            replica_id=-1, max_wait_ms=wait_ms, min_bytes=least, max_bytes=most,
            isolation_level=int(committed), session_id=session[0], session_epoch=session[1],
            topics=[kinds.FetchTopic(topic=topic, partitions=requests)] if requests else [],
            forgotten_topics_data=result, rack_id=rack,
        ),
    )  # fmt: skip


def fetched_partitions(response: Any) -> list[Any]:
    return [partition for topic in response.responses for partition in topic.partitions]


def read_offset(
    brokers: Brokers, node: int, topic: str, asked: int, *, epoch: int = -1, committed: bool = False
) -> Any:
    """Partition 0 of the response of ListOffsets 7."""
    kinds = ListOffsetsRequest.ListOffsetsTopic
    part = kinds.ListOffsetsPartition(
        partition_index=0, current_leader_epoch=epoch, timestamp=asked
    )
    request = ListOffsetsRequest[7](
        replica_id=-1, isolation_level=int(committed), topics=[kinds(name=topic, partitions=[part])]
    )
    return brokers.send(node, request).topics[0].partitions[0]


def read_epoch_end(
    brokers: Brokers, node: int, topic: str, asked: int, *, current: int = -1
) -> Any:
    kinds = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    part = kinds.OffsetForLeaderPartition(
        partition=0, current_leader_epoch=current, leader_epoch=asked
    )
    request = OffsetForLeaderEpochRequest[3](
        replica_id=-1, topics=[kinds(topic=topic, partitions=[part])]
    )
    return brokers.send(node, request).topics[0].partitions[0]


def create_led_topic(brokers: Brokers, name: str, partitions: int = 1) -> tuple[int, int]:
    """Create a topic with one leader. Returns leader and follower."""
    leader, follower, *_ = brokers.nodes
    brokers.create(name, [[leader, follower]] * partitions, retention_ms="-1")
    return leader, follower


def _fetch_beyond_end(brokers: Brokers, name: str) -> BrokerAnswer:
    leader, _ = create_led_topic(brokers, name)
    write_batches(brokers, leader, name, make_batch(b"0"))
    errors = [
        fetched_partitions(fetch(brokers, leader, name, {0: at}))[0].error_code for at in (1, 2)
    ]
    return leader, names(errors)


def _request_in_future_epoch(brokers: Brokers, name: str) -> BrokerAnswer:
    leader, _ = create_led_topic(brokers, name)
    errors = [
        fetched_partitions(fetch(brokers, leader, name, {0: 0}, epoch=9))[0].error_code,
        read_offset(brokers, leader, name, LATEST, epoch=9).error_code,
        read_epoch_end(brokers, leader, name, 0, current=9).error_code,
    ]
    return leader, names(errors)


def _request_at_follower(brokers: Brokers, name: str) -> BrokerAnswer:
    leader, follower = create_led_topic(brokers, name)
    response = produce(brokers, follower, name, 0, make_batch(b"0"), version=10)
    part = produced_partition(response)
    errors = [
        part.error_code,
        read_offset(brokers, follower, name, LATEST).error_code,
        read_epoch_end(brokers, follower, name, 0).error_code,
    ]
    hint = (
        part.current_leader.leader_id,
        [endpoint.node_id for endpoint in response.node_endpoints],
    )
    return follower, f"{names(errors)}, {'who leads' if hint == (leader, [leader]) else hint}"


def _use_session(brokers: Brokers, name: str) -> BrokerAnswer:
    """Partitions in the responses of a session: all, none, with new records, without a forgotten
    one, with one added again."""
    leader, _ = create_led_topic(brokers, name, 2)
    first = fetch(brokers, leader, name, {0: 0, 1: 0}, session=(0, 0))
    results, number = [_format_partitions(first)], first.session_id

    def fetch_next(offsets: Mapping[int, int], forgotten: Sequence[int] = ()) -> None:
        session = (number, len(results))
        answer = fetch(brokers, leader, name, offsets, session=session, forgotten=forgotten)
        results.append(_format_partitions(answer))

    fetch_next({})
    write_batches(brokers, leader, name, make_batch(b"a"), partition=1)
    fetch_next({})
    write_batches(brokers, leader, name, make_batch(b"b"), partition=0)
    fetch_next({}, [1])
    fetch_next({0: 1, 1: 0})
    return leader, "; ".join(results)


def _format_partitions(answer: Any) -> str:
    check("Fetch", answer.error_code)
    results = [
        f"{fetched_partition.partition_index}:{len(fetched_partition.records or b'') > 0:d}"
        for fetched_partition in fetched_partitions(answer)
    ]
    return " ".join(sorted(results)) or "-"


def _wait_in_fetch(brokers: Brokers, name: str) -> BrokerAnswer:
    """A fetch without records waits its maximal time; with new records it returns at once."""
    leader, _ = create_led_topic(brokers, name)
    began = brokers.environment.monotonic_s()
    fetch(brokers, leader, name, {0: 0}, wait_ms=WAIT_MS)
    waited_ms = (brokers.environment.monotonic_s() - began) * 1_000
    began = brokers.environment.monotonic_s()

    def write() -> Any:
        while brokers.environment.monotonic_s() < began + 0.2:  # the fetch is there by then
            brokers.metadata(leader, name)
        write_batches(brokers, leader, name, make_batch(b"0"))

    def wait() -> tuple[str, float]:
        value = _format_partitions(fetch(brokers, leader, name, {0: 0}, wait_ms=LONG_MS))
        return value, (brokers.environment.monotonic_s() - began) * 1_000

    result, took_ms = brokers.environment.run_all([wait, write])[0]
    patient = "waited" if waited_ms >= WAIT_MS - 50 else f"{waited_ms:.0f} ms"
    return leader, f"{patient}, {result} {'at once' if took_ms < LONG_MS else 'late'}"


def _fetch_from_follower(brokers: Brokers, name: str) -> BrokerAnswer:
    """A follower serves the last committed record, though no record follows it (KIP-227, 392)."""
    leader, follower = create_led_topic(brokers, name)
    write_batches(brokers, leader, name, make_batch(b"0"))
    for _ in range(20):
        (part,) = fetched_partitions(fetch(brokers, follower, name, {0: 0}, wait_ms=100))
        if part.error_code or part.records:
            break
    return follower, f"{name_of(part.error_code)}, {'all' if part.records else 'nothing'}"


def _fetch_one_byte(brokers: Brokers, name: str) -> BrokerAnswer:
    """However small the limit, the first batch is complete, and the only one."""
    leader, _ = create_led_topic(brokers, name)
    batch = make_batch(b"x" * 200)
    write_batches(brokers, leader, name, batch, batch)
    (part,) = fetched_partitions(fetch(brokers, leader, name, {0: 0}, most=1))
    size = len(part.records or b"")
    return leader, "one batch" if size == len(batch) else f"{size} bytes of batches of {len(batch)}"


def _list_offsets(brokers: Brokers, name: str) -> BrokerAnswer:
    leader, _ = create_led_topic(brokers, name)
    write_batches(brokers, leader, name, make_batch(b"0", b"1"), make_batch(b"2", None))
    requests = (EARLIEST, LATEST, BASE_MS + 5, BASE_MS + 11, NEWEST)
    results = [read_offset(brokers, leader, name, request).offset for request in requests]
    return leader, " ".join(map(str, results))


def _round_trip(brokers: Brokers, name: str) -> BrokerAnswer:
    """Records without keys, without values, or with headers without values."""
    leader, _ = create_led_topic(brokers, name)
    sent = make_batch(b"", None, b"last")
    write_batches(brokers, leader, name, sent)
    (part,) = fetched_partitions(fetch(brokers, leader, name, {0: 0}))
    return leader, "as it was" if bytes(part.records or b"")[PREFIX:] == sent[PREFIX:] else "other"


def _read_epoch_ends(brokers: Brokers, name: str) -> BrokerAnswer:
    leader, _ = create_led_topic(brokers, name)
    write_batches(brokers, leader, name, make_batch(b"0", b"1"))
    results = [read_epoch_end(brokers, leader, name, request) for request in (0, 7)]
    return leader, " ".join(f"{result.leader_epoch}:{result.end_offset}" for result in results)


def delete_records(brokers: Brokers, node: int, topic: str, offset: int) -> Any:
    """Partition 0 of the response of DeleteRecords up to this offset; -1 is the end."""
    kinds = DeleteRecordsRequest.DeleteRecordsTopic
    part = kinds.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest[1](
        topics=[kinds(name=topic, partitions=[part])], timeout_ms=2_000
    )
    return brokers.send(node, request).topics[0].partitions[0]


def _delete_records(brokers: Brokers, name: str) -> BrokerAnswer:
    leader, follower = create_led_topic(brokers, name)
    write_batches(brokers, leader, name, make_batch(b"0", b"1", b"2"))
    refused = [
        delete_records(brokers, leader, name, 4).error_code,
        delete_records(brokers, follower, name, 1).error_code,
    ]
    begins = [read_offset(brokers, leader, name, EARLIEST).offset]
    for upto in (2, -1):
        result = delete_records(brokers, leader, name, upto)
        check("DeleteRecords", result.error_code)
        begins += [result.low_watermark, read_offset(brokers, leader, name, EARLIEST).offset]
    return leader, f"{names(refused)}, {' '.join(map(str, begins))}"


def _produce_without_key(brokers: Brokers, name: str) -> BrokerAnswer:
    """A compacted topic rejects a record without key."""
    leader = brokers.nodes[0]
    brokers.create(name, [[leader]], cleanup_policy="compact")
    part = produced_partition(produce(brokers, leader, name, 0, make_batch(b"0")))
    return leader, name_of(part.error_code)


def _produce_with_acks(brokers: Brokers, name: str) -> BrokerAnswer:
    """Producers that request an invalid acks, or acks=1 with min.insync.replicas=2."""
    brokers.create(name, [[brokers.nodes[0]]], min_insync_replicas="2")
    leader = brokers.nodes[0]
    kinds = ProduceRequest.TopicProduceData
    results = []
    for acks in (2, 1):
        partition_data = [kinds.PartitionProduceData(index=0, records=make_batch(b"0"))]
        request = ProduceRequest[8](
            transactional_id=None, acks=acks, timeout_ms=2_000,
            topic_data=[kinds(name=name, partition_data=partition_data)],
        )  # fmt: skip
        results.append(produced_partition(brokers.send(leader, request)).error_code)
    return leader, names(results)


RECORDS = (
    Question(
        about="fetches at the end, and beyond it",
        answer="No, OffsetOutOfRange",
        ask=_fetch_beyond_end,
    ),
    Question(
        about="Fetch, ListOffsets and OffsetForLeaderEpoch in a future epoch",
        answer=", ".join(["UnknownLeaderEpoch"] * 3),
        ask=_request_in_future_epoch,
    ),
    Question(
        about="Produce, ListOffsets and OffsetForLeaderEpoch to a follower (KIP-951)",
        answer=", ".join([*["NotLeaderForPartition"] * 3, "who leads"]),
        ask=_request_at_follower,
    ),
    Question(
        about="partitions in the responses of a fetch session, with new records and "
        "without (KIP-227)",
        answer="0:0 1:0; -; 1:1; 0:1; 1:1",
        ask=_use_session,
    ),
    Question(
        about=f"fetches that wait {WAIT_MS} ms without records, and until records arrive",
        answer="waited, 0:1 at once",
        ask=_wait_in_fetch,
    ),
    Question(
        about="the last record of a partition at a follower (KIP-392)",
        answer="No, all",
        ask=_fetch_from_follower,
    ),
    Question(about="a fetch of one byte (KIP-74)", answer="one batch", ask=_fetch_one_byte),
    Question(
        about="ListOffsets: start, end, by two timestamps, of the largest timestamp",
        answer="0 4 1 -1 1",
        ask=_list_offsets,
    ),
    Question(
        about="records without keys, with empty values, or without values",
        answer="as it was",
        ask=_round_trip,
    ),
    Question(
        about="the ends of the current epoch and of an unknown one",
        answer="0:2 -1:-1",
        ask=_read_epoch_ends,
    ),
    Question(
        about="a record without a key, to a compacted topic",
        answer="InvalidRecord",
        ask=_produce_without_key,
    ),
    Question(
        about="Produce with acks=2, and with acks=1",
        answer="InvalidRequiredAcks, No",
        ask=_produce_with_acks,
    ),
)

DELETIONS = (
    Question(
        about="DeleteRecords beyond the end, at a follower, up to 2, up to the end",
        answer="OffsetOutOfRange, NotLeaderForPartition, 0 2 2 3 3",
        ask=_delete_records,
    ),
)
