"""Questions about fetches: limits, fields beside records, and the preferred replica."""

from __future__ import annotations

import uuid
from typing import Any

from kafka.protocol.consumer import FetchRequest

from urteil.harness.conformance.question import (
    BrokerAnswer,
    Brokers,
    Question,
    check,
    name_of,
    names,
)
from urteil.harness.conformance.records import (
    MOST,
    WAIT_MS,
    create_led_topic,
    delete_records,
    fetch,
    fetched_partitions,
    make_batch,
    write_batches,
)
from urteil.harness.racks import RACK

NEW, CLOSING = (0, 0), -1
"""A new session, and the epoch that closes a session."""
LARGE = 1 << 20
"""More bytes than the partition has."""


def _use_invalid_sessions(brokers: Brokers, name: str) -> BrokerAnswer:
    """An unknown session, a wrong epoch, the right epoch, and a closed session."""
    leader, _ = create_led_topic(brokers, name)
    number = fetch(brokers, leader, name, {0: 0}, session=NEW).session_id
    errors = [
        fetch(brokers, leader, name, {}, session=session).error_code
        for session in ((number ^ 1, 1), (number, 2), (number, 1))
    ]
    check("Fetch", fetch(brokers, leader, name, {}, session=(number, CLOSING)).error_code)
    errors.append(fetch(brokers, leader, name, {}, session=(number, 2)).error_code)
    return leader, names(errors)


def _fetch_by_ids(brokers: Brokers, name: str) -> BrokerAnswer:
    """Fetch 13 names topics by id; an unknown id gets an error."""
    leader, _ = create_led_topic(brokers, name)
    write_batches(brokers, leader, name, make_batch(b"0"))
    known = brokers.metadata(leader, name, version=10).topic_id
    results = []
    for topic_id in (known, uuid.UUID(int=known.int ^ 1)):
        (part,) = fetched_partitions(_fetch_by_id(brokers, leader, topic_id))
        results.append(f"{name_of(part.error_code)} {bool(part.records)}")
    return leader, ", ".join(results)


def _fetch_by_id(brokers: Brokers, node: int, topic_id: uuid.UUID) -> Any:
    part = FetchRequest.FetchTopic.FetchPartition(
        partition=0, current_leader_epoch=-1, fetch_offset=0, last_fetched_epoch=-1,
        log_start_offset=-1, partition_max_bytes=MOST,
    )  # fmt: skip
    return brokers.send(
        node,
        FetchRequest[13](
            replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=MOST, isolation_level=0,
            session_id=0, session_epoch=-1, forgotten_topics_data=[], rack_id="",
            topics=[FetchRequest.FetchTopic(topic_id=topic_id, partitions=[part])],
        ),
    )  # fmt: skip


def _read_offsets(brokers: Brokers, name: str) -> BrokerAnswer:
    """Start and end of a partition whose first record was deleted."""
    leader, _ = create_led_topic(brokers, name)
    write_batches(brokers, leader, name, make_batch(b"0", b"1", b"2"))
    check("DeleteRecords", delete_records(brokers, leader, name, 1).error_code)
    (result,) = fetched_partitions(fetch(brokers, leader, name, {0: 0}))
    (part,) = fetched_partitions(fetch(brokers, leader, name, {0: 1}))
    ends = [part.log_start_offset, part.last_stable_offset, part.high_watermark]
    return leader, f"{name_of(result.error_code)}, {ends}"


def _fetch_one_byte_each(brokers: Brokers, name: str) -> BrokerAnswer:
    """However small the limit of each partition, the first batch is returned, and no other."""
    leader, _ = create_led_topic(brokers, name, 2)
    batch = make_batch(b"x" * 200)
    for p in range(2):
        write_batches(brokers, leader, name, batch, batch, partition=p)
    answers = fetched_partitions(fetch(brokers, leader, name, {0: 0, 1: 0}, most_of_each=1))
    sizes = {part.partition_index: len(part.records or b"") for part in answers}
    return leader, f"{sizes[0] == len(batch)} {sizes[1]}"


def _fetch_more_than_exists(brokers: Brokers, name: str) -> BrokerAnswer:
    """A fetch that requires more bytes than exist waits, and then returns what exists."""
    leader, _ = create_led_topic(brokers, name)
    write_batches(brokers, leader, name, make_batch(b"0"))
    began = brokers.environment.monotonic_s()
    (part,) = fetched_partitions(fetch(brokers, leader, name, {0: 0}, wait_ms=WAIT_MS, least=LARGE))
    waited = (brokers.environment.monotonic_s() - began) * 1_000 >= WAIT_MS - 50
    return leader, f"{'waited' if waited else 'at once'}, {bool(part.records)}"


def _read_preferred_replica(brokers: Brokers, name: str) -> BrokerAnswer:
    """A reader is redirected to the replica in its rack (KIP-392), but not in the leader's rack or
    in a rack without replica."""
    leader, follower = create_led_topic(brokers, name)
    write_batches(brokers, leader, name, make_batch(b"0"))
    (outsider,) = set(brokers.nodes) - {leader, follower}
    results = []
    for node in (follower, leader, outsider):
        (part,) = fetched_partitions(fetch(brokers, leader, name, {0: 0}, rack=f"{RACK}{node}"))
        results.append((part.preferred_read_replica, bool(part.records)))
    expected = [(follower, False), (-1, True), (-1, True)]
    return leader, "to the nearest" if results == expected else str(results)


FETCHES = (
    Question(
        about="fetches in an unknown session, in a wrong epoch, the right one, and "
        "in a closed session",
        answer="FetchSessionIdNotFound, InvalidFetchSessionEpoch, No, FetchSessionIdNotFound",
        ask=_use_invalid_sessions,
    ),
    Question(
        about="fetches by a topic's id, and by an unknown id (KIP-516)",
        answer="No True, UnknownTopicId False",
        ask=_fetch_by_ids,
    ),
    Question(
        about="start and end offsets in a fetch of a partition whose first record is deleted",
        answer="OffsetOutOfRange, [1, 3, 3]",
        ask=_read_offsets,
    ),
    Question(
        about="a fetch of one byte of each of two partitions (KIP-74)",
        answer="True 0",
        ask=_fetch_one_byte_each,
    ),
    Question(
        about="a fetch of more bytes than exist", answer="waited, True", ask=_fetch_more_than_exists
    ),
    Question(
        about="the replica for readers in the racks of a follower, of the leader, of no replica",
        answer="to the nearest",
        ask=_read_preferred_replica,
    ),
)
