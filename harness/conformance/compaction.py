"""A question about a compacted topic: the records that remain, and a producer's state on a replica
that was added after the compaction."""

from __future__ import annotations

import struct
from functools import partial

from kafka.protocol.producer import InitProducerIdRequest

from urteil.harness.conformance.question import (
    BrokerAnswer,
    Brokers,
    Question,
    by_all,
    check,
    name_of,
)
from urteil.harness.conformance.reassignments import elect, reassign
from urteil.harness.conformance.records import (
    fetch,
    fetched_partitions,
    produce,
    produced_partition,
    write_batches,
)
from urteil.harness.protocol.produce_requests import single_record_batch

SEGMENT_MS, CLEANED_S = 200, 9.0
POLL_S = 0.1
LENGTH_AT, COUNT_AT = 8, 57
"""Positions of a batch's length and record count."""


def _count_records(brokers: Brokers, node: int, topic: str) -> dict[int, int]:
    """The number of records of each batch in the first segment, by base offset."""
    (part,) = fetched_partitions(fetch(brokers, node, topic, {0: 0}))
    data, by_name = bytes(part.records or b""), {}
    while len(data) > COUNT_AT:
        (by_name[struct.unpack_from(">q", data)[0]],) = struct.unpack_from(">i", data, COUNT_AT)
        data = data[12 + struct.unpack_from(">i", data, LENGTH_AT)[0] :]
    return by_name


def _compact(brokers: Brokers, name: str) -> BrokerAnswer:
    """A producer's only record is overwritten and cleaned. A replica that never had the record
    still knows its sequence (KIP-98: an empty batch remains)."""
    leader, other, *_ = brokers.nodes
    brokers.create(
        name, [[leader]], cleanup_policy="compact", segment_ms=str(SEGMENT_MS),
        min_cleanable_dirty_ratio="0.01", max_compaction_lag_ms="1000",
    )  # fmt: skip
    producer = brokers.send(
        leader, InitProducerIdRequest[0](transactional_id=None, transaction_timeout_ms=1)
    )
    check("InitProducerId", producer.error_code)
    now_ms = brokers.environment.wall_ms
    own_batch = partial(single_record_batch, producer_id=producer.producer_id, epoch=0)
    write_batches(brokers, leader, name, own_batch(b"k", b"mine", now_ms(), sequence=0))
    write_batches(brokers, leader, name, single_record_batch(b"k", b"another's", now_ms()))
    brokers.environment.pause(2 * SEGMENT_MS / 1000)
    write_batches(
        brokers, leader, name, single_record_batch(b"last", b"", now_ms())
    )  # in the next segment
    counts = brokers.environment.until(
        lambda: _count_records(brokers, leader, name),
        lambda counts: not counts.get(0),
        deadline_s=CLEANED_S,
        poll_s=POLL_S,
    )
    left = sorted(at for at, count in counts.items() if count)
    check("AlterPartitionReassignments", reassign(brokers, name, [other, leader]))

    def observe_isr(node: int) -> str:
        return str(sorted(brokers.metadata(node, name).partitions[0].isr_nodes))

    def observe_leader(node: int) -> str:
        return str(brokers.metadata(node, name).partitions[0].leader_id)

    by_all(brokers, observe_isr, str(sorted([leader, other])))
    check("ElectLeaders", elect(brokers, name))
    by_all(brokers, observe_leader, str(other))
    results = []
    for sequence in (5, 1):
        answer = produce(
            brokers, other, name, 0, own_batch(b"k", b"mine", now_ms(), sequence=sequence)
        )
        results.append(name_of(produced_partition(answer).error_code))
    return other, f"{left} left, {', '.join(results)}"


COMPACTION = (
    Question(
        about="the records that compaction removes, and a producer's next batches to a "
        "replica that was added afterwards",
        answer="[1] left, OutOfOrderSequenceNumber, No",
        ask=_compact,
    ),
)
