"""A question about a topic that is compacted: what is left of it for readers, for replicas that
come to it later, and for producers."""

from __future__ import annotations

import struct
import threading
import time
from functools import partial

from kafka.protocol.producer import InitProducerIdRequest

from urteil.harness.conformance.question import Brokers, Question, by_all, check, name_of
from urteil.harness.conformance.reassignments import elect, reassign
from urteil.harness.conformance.records import appended, fetch, parts_of, produce, written
from urteil.harness.protocol.produce_requests import single_record_batch

Told = tuple[int, str]
SEGMENT_MS, CLEANED_S = 200, 9.0
POLL_S = 0.1
LENGTH_AT, COUNT_AT = 8, 57
"""Where a batch tells how long it is, and of how many records."""


def _records(brokers: Brokers, node: int, topic: str) -> dict[int, int]:
    """How many records each batch of the first segment has, by its first offset."""
    (part,) = parts_of(fetch(brokers, node, topic, {0: 0}))
    data, found = bytes(part.records or b""), {}
    while len(data) > COUNT_AT:
        (found[struct.unpack_from(">q", data)[0]],) = struct.unpack_from(">i", data, COUNT_AT)
        data = data[12 + struct.unpack_from(">i", data, LENGTH_AT)[0] :]
    return found


def _cleaned(brokers: Brokers, name: str) -> Told:
    """A producer's only record is overwritten by another one, and cleaned away: what was its
    sequence, a replica that never saw the record knows as well (KIP-98: an empty batch stays).
    """
    leader, other, *_ = brokers.nodes
    brokers.create(
        name, [[leader]], cleanup_policy="compact", segment_ms=str(SEGMENT_MS),
        min_cleanable_dirty_ratio="0.01", max_compaction_lag_ms="1000",
    )  # fmt: skip
    given = brokers.ask(
        leader, InitProducerIdRequest[0](transactional_id=None, transaction_timeout_ms=1)
    )
    check("InitProducerId", given.error_code)
    mine = partial(single_record_batch, producer_id=given.producer_id, epoch=0)
    written(brokers, leader, name, mine(b"k", b"mine", _now_ms(), sequence=0))
    written(brokers, leader, name, single_record_batch(b"k", b"another's", _now_ms()))
    threading.Event().wait(2 * SEGMENT_MS / 1000)
    written(
        brokers, leader, name, single_record_batch(b"last", b"", _now_ms())
    )  # in the next segment
    deadline = time.monotonic() + CLEANED_S
    while _records(brokers, leader, name).get(0) and time.monotonic() < deadline:
        threading.Event().wait(POLL_S)
    left = sorted(at for at, count in _records(brokers, leader, name).items() if count)
    check("AlterPartitionReassignments", reassign(brokers, name, [other, leader]))

    def replicas(node: int) -> str:
        return str(sorted(brokers.metadata(node, name).partitions[0].isr_nodes))

    def leads(node: int) -> str:
        return str(brokers.metadata(node, name).partitions[0].leader_id)

    by_all(brokers, replicas, str(sorted([leader, other])))
    check("ElectLeaders", elect(brokers, name))
    by_all(brokers, leads, str(other))
    told = []
    for sequence in (5, 1):
        answer = produce(brokers, other, name, 0, mine(b"k", b"mine", _now_ms(), sequence=sequence))
        told.append(name_of(appended(answer).error_code))
    return other, f"{left} left, {', '.join(told)}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


COMPACTION = (
    Question(
        about="what is cleaned away of a compacted topic, and a producer's next batches to a "
        "replica that came to it afterwards",
        answer="[1] left, OutOfOrderSequenceNumber, No",
        ask=_cleaned,
    ),
)
