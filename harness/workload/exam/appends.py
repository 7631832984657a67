"""Questions about what a leader lets into a log, what it writes on it, and what it says of it."""

from __future__ import annotations

import time
from typing import Any

from kafka.record.default_records import DefaultRecordBatch

from urteil.harness.workload.exam.question import Brokers, Question, awaited, name_of, names
from urteil.harness.workload.exam.records import (
    BASE_MS,
    EARLIEST,
    batch,
    delete_records,
    fetch,
    led,
    list_offset,
    parts_of,
    produce,
    written,
)
from urteil.harness.workload.exam.topics import SET, alter

Told = tuple[int, str]
SOON_MS = 600_000
SMALL, LARGE = batch(b"x"), batch(b"x" * 300)


def _append(brokers: Brokers, node: int, topic: str, data: bytes, partition: int = 0) -> Any:
    return produce(brokers, node, topic, partition, data).responses[0].partition_responses[0]


def _size(brokers: Brokers, name: str) -> Told:
    """As large as may be, and larger by one byte."""
    leader = brokers.nodes[0]
    brokers.create(name, [[leader]], max_message_bytes=str(len(SMALL)))
    sent = (SMALL, batch(b"xx"), SMALL)
    return leader, names(_append(brokers, leader, name, one).error_code for one in sent)


def _changed(brokers: Brokers, name: str) -> Told:
    """A leader heeds a setting that was changed while it leads, and that it was set back."""
    leader, _ = led(brokers, name)

    def told(value: str, setting: str, answer: str) -> str:
        alter(brokers, name, (setting, SET, value))
        return awaited(lambda: name_of(_append(brokers, leader, name, LARGE).error_code), answer)

    found = [
        told(value, setting, answer)
        for setting, worse, better, error in (
            ("max.message.bytes", "200", "2000", "MessageSizeTooLarge"),
            ("message.timestamp.before.max.ms", "1000", str(1 << 62), "InvalidTimestamp"),
            ("cleanup.policy", "compact", "delete", "InvalidRecord"),
        )
        for value, answer in ((worse, error), (better, "No"))
    ]
    return leader, ", ".join(found)


def _times(brokers: Brokers, name: str) -> Told:
    """By whose clock records are stamped, as the answer, the record and its place by time say."""
    leader, found = brokers.nodes[0], []
    for kind in ("CreateTime", "LogAppendTime"):
        topic = f"{name}-{kind}"
        brokers.create(topic, [[leader]], message_timestamp_type=kind)
        now_ms = time.time() * 1_000
        told = _append(brokers, leader, topic, batch(b"0", b"1"))
        (part,) = parts_of(fetch(brokers, leader, topic, {0: 0}))
        stamps = [one.timestamp for one in DefaultRecordBatch(bytes(part.records))]
        stamps.append(list_offset(brokers, leader, topic, BASE_MS).timestamp)
        theirs = all(abs(one - now_ms) < SOON_MS for one in (*stamps, told.log_append_time_ms))
        own = [BASE_MS, BASE_MS + 10, BASE_MS]
        ours = stamps == own and told.log_append_time_ms == -1
        found.append("client" if ours else "broker" if theirs else f"{stamps} of {told}")
    return leader, ", ".join(found)


def _nowhere(brokers: Brokers, name: str) -> Told:
    leader, _ = led(brokers, name)
    told = [
        _append(brokers, leader, name, SMALL, 7),
        parts_of(fetch(brokers, leader, name, {7: 0}))[0],
        _append(brokers, leader, f"{name}-never", SMALL),
        list_offset(brokers, leader, f"{name}-never", EARLIEST),
    ]
    return leader, names(one.error_code for one in told)


def _flipped(brokers: Brokers, name: str) -> Told:
    leader, _ = led(brokers, name)
    flipped = LARGE[:-9] + bytes([LARGE[-9] ^ 1]) + LARGE[-8:]
    told = [_append(brokers, leader, name, one) for one in (flipped, LARGE)]
    return leader, f"{names(one.error_code for one in told)} at {told[1].base_offset}"


def _bounds(brokers: Brokers, name: str) -> Told:
    """What a fetch says of a log that lost its beginning; and of a place amid a batch."""
    leader, _ = led(brokers, name)
    written(brokers, leader, name, batch(b"0", b"1"), batch(b"2", b"3"))
    delete_records(brokers, leader, name, 1)
    found = []
    for at in (0, 1, 3):
        (part,) = parts_of(fetch(brokers, leader, name, {0: at}))
        first = DefaultRecordBatch(bytes(part.records)).base_offset if part.records else "nothing"
        found.append(
            f"{name_of(part.error_code)} {first} of {part.log_start_offset} to "
            f"{part.last_stable_offset} and {part.high_watermark}"
        )
    return leader, "; ".join(found)


APPENDS = (
    Question(
        about="batches of max.message.bytes, of a byte more, of max.message.bytes",
        answer="No, MessageSizeTooLarge, No",
        ask=_size,
    ),
    Question(
        about="settings that a leader is given, and that are set back: largest batch, oldest time, "
        "compaction",
        answer="MessageSizeTooLarge, No, InvalidTimestamp, No, InvalidRecord, No",
        ask=_changed,
    ),
    Question(
        about="by whose clock records of CreateTime and of LogAppendTime are stamped",
        answer="client, broker",
        ask=_times,
    ),
    Question(
        about="Produce and Fetch of no partition, Produce and ListOffsets of no topic",
        answer=", ".join(["UnknownTopicOrPartition"] * 4),
        ask=_nowhere,
    ),
    Question(
        about="a batch in which a bit was flipped, and one as it was",
        answer="CorruptRecord, No at 0",
        ask=_flipped,
    ),
    Question(
        about="fetches before a log's begin, at it, and amid a batch",
        answer="OffsetOutOfRange nothing of -1 to -1 and -1; No 0 of 1 to 4 and 4; "
        "No 2 of 1 to 4 and 4",
        ask=_bounds,
    ),
)
