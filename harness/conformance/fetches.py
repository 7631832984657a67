"""More questions about fetches: what limits them, what they tell beside records, where they go."""

from __future__ import annotations

import time
import uuid
from typing import Any

from kafka.protocol.consumer import FetchRequest

from urteil.harness.conformance.question import Brokers, Question, check, name_of, names
from urteil.harness.conformance.records import (
    MOST,
    WAIT_MS,
    batch,
    delete_records,
    fetch,
    led,
    parts_of,
    written,
)
from urteil.harness.scenario import RACK

Told = tuple[int, str]
NEW, CLOSING = (0, 0), -1
"""A session that is to begin, and the epoch that ends one."""
LARGE = 1 << 20
"""More bytes than there are."""


def _sessions(brokers: Brokers, name: str) -> Told:
    """Of one that never was, in an epoch that is not its next one, and once it is over."""
    leader, _ = led(brokers, name)
    number = fetch(brokers, leader, name, {0: 0}, session=NEW).session_id
    told = [
        fetch(brokers, leader, name, {}, session=session).error_code
        for session in ((number ^ 1, 1), (number, 2), (number, 1))
    ]
    check("Fetch", fetch(brokers, leader, name, {}, session=(number, CLOSING)).error_code)
    told.append(fetch(brokers, leader, name, {}, session=(number, 2)).error_code)
    return leader, names(told)


def _by_id(brokers: Brokers, name: str) -> Told:
    """Topics are named by their ids from Fetch 13 on; what there is no topic of is said so."""
    leader, _ = led(brokers, name)
    written(brokers, leader, name, batch(b"0"))
    known = brokers.metadata(leader, name, version=10).topic_id
    told = []
    for one in (known, uuid.uuid4()):
        (part,) = parts_of(_fetch_by_id(brokers, leader, one))
        told.append(f"{name_of(part.error_code)} {bool(part.records)}")
    return leader, ", ".join(told)


def _fetch_by_id(brokers: Brokers, node: int, topic_id: uuid.UUID) -> Any:
    kinds = FetchRequest
    part = kinds.FetchTopic.FetchPartition(
        partition=0, current_leader_epoch=-1, fetch_offset=0, last_fetched_epoch=-1,
        log_start_offset=-1, partition_max_bytes=MOST,
    )  # fmt: skip
    return brokers.ask(
        node,
        kinds[13](
            replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=MOST, isolation_level=0,
            session_id=0, session_epoch=-1, forgotten_topics_data=[], rack_id="",
            topics=[kinds.FetchTopic(topic_id=topic_id, partitions=[part])],
        ),
    )  # fmt: skip


def _beside_records(brokers: Brokers, name: str) -> Told:
    """Where a partition begins and ends, of which the first record is deleted."""
    leader, _ = led(brokers, name)
    written(brokers, leader, name, batch(b"0", b"1", b"2"))
    check("DeleteRecords", delete_records(brokers, leader, name, 1).error_code)
    (gone,) = parts_of(fetch(brokers, leader, name, {0: 0}))
    (part,) = parts_of(fetch(brokers, leader, name, {0: 1}))
    ends = [part.log_start_offset, part.last_stable_offset, part.high_watermark]
    return leader, f"{name_of(gone.error_code)}, {ends}"


def _few_of_each(brokers: Brokers, name: str) -> Told:
    """However few bytes of each partition are asked for, the first batch comes; no other does."""
    leader, _ = led(brokers, name, 2)
    one = batch(b"x" * 200)
    for p in range(2):
        written(brokers, leader, name, one, one, partition=p)
    parts = parts_of(fetch(brokers, leader, name, {0: 0, 1: 0}, most_of_each=1))
    sizes = {part.partition_index: len(part.records or b"") for part in parts}
    return leader, f"{sizes[0] == len(one)} {sizes[1]}"


def _least(brokers: Brokers, name: str) -> Told:
    """Who wants more bytes than there are waits, and has then what there is."""
    leader, _ = led(brokers, name)
    written(brokers, leader, name, batch(b"0"))
    began = time.monotonic()
    (part,) = parts_of(fetch(brokers, leader, name, {0: 0}, wait_ms=WAIT_MS, least=LARGE))
    waited = (time.monotonic() - began) * 1_000 >= WAIT_MS - 50
    return leader, f"{'waited' if waited else 'at once'}, {bool(part.records)}"


def _nearest(brokers: Brokers, name: str) -> Told:
    """A reader is sent to the replica in its rack (KIP-392); one in the leader's, or in none where
    a replica stands, is not."""
    leader, follower = led(brokers, name)
    written(brokers, leader, name, batch(b"0"))
    (stranger,) = set(brokers.nodes) - {leader, follower}
    told = []
    for node in (follower, leader, stranger):
        (part,) = parts_of(fetch(brokers, leader, name, {0: 0}, rack=f"{RACK}{node}"))
        told.append((part.preferred_read_replica, bool(part.records)))
    right = [(follower, False), (-1, True), (-1, True)]
    return leader, "to the nearest" if told == right else str(told)


FETCHES = (
    Question(
        about="fetch sessions that never were, in a wrong epoch, the right one, and closed",
        answer="FetchSessionIdNotFound, InvalidFetchSessionEpoch, No, FetchSessionIdNotFound",
        ask=_sessions,
    ),
    Question(
        about="fetches by a topic's id, and by one that is nobody's (KIP-516)",
        answer="No True, UnknownTopicId False",
        ask=_by_id,
    ),
    Question(
        about="what a fetch tells of a partition whose first record is deleted",
        answer="OffsetOutOfRange, [1, 3, 3]",
        ask=_beside_records,
    ),
    Question(
        about="a fetch of one byte of each of two partitions (KIP-74)",
        answer="True 0",
        ask=_few_of_each,
    ),
    Question(about="a fetch of more bytes than there are", answer="waited, True", ask=_least),
    Question(
        about="where readers in the racks of a follower, of the leader, and of nobody are sent",
        answer="to the nearest",
        ask=_nearest,
    ),
)
