"""Damage to topics with deletion or compaction, which are made up of the copy's records."""

from __future__ import annotations

from urteil.harness.scenario import TopicFact
from urteil.harness.verify.damage.added_topics import (
    BOUNDED,
    COMPACTED,
    DELETED,
    MADE_UP_IDS,
    RETAINED,
)
from urteil.harness.verify.damage.copy import Copy, Untried, damage, first, states
from urteil.harness.verify.evidence import Row

EACH = 4
"""So many records has each key of the compacted topic, one after the other."""

_TABLES = ("sends", "reads", "replicas", "logs", "passes", "states")


def clone(copy: Copy, topic: TopicFact) -> list[Row]:
    """The copy's victims and all that is known of them, once more as another topic's partition 0.

    Answers the cloned sends in log order. Only done once: later calls find them.
    """
    if not any(row["topic_id"] == topic.topic_id for row in copy.rows("sends")):
        _clone(copy, topic)
    known = [
        row
        for row in copy.rows("sends")
        if row["topic_id"] == topic.topic_id and row["offset"] is not None
    ]
    if len(known) < 8 * EACH:
        raise Untried("too few records")
    return sorted(known, key=lambda row: int(row["offset"]))


def _clone(copy: Copy, topic: TopicFact) -> None:
    place = {"topic_id": topic.topic_id, "topic": topic.name, "partition": 0}
    healthy_values = {row["value_id"] for row in copy.victims}
    final = copy.final_passes()
    low = min(row["offset"] for row in copy.victims) if copy.victims else 0
    key = {row["value_id"]: f"key{n // EACH}" for n, row in enumerate(copy.victims)}
    moved = {row["value_id"]: low + n for n, row in enumerate(copy.victims)}
    end = low + len(moved)
    for table in _TABLES:
        for row in list(copy.rows(table)):
            if row["topic_id"] in MADE_UP_IDS:
                continue
            if table in ("sends", "reads", "replicas"):
                value = row["value_id"]
                if value not in healthy_values or (table == "reads" and not copy.is_final(row)):
                    continue
                named = {"value_id": f"{topic.name}/{value}", "key": key[value]}
                here = {"offset": moved[value], "partition_intended": 0}
                plain = {"tombstone": False} if table == "sends" else {}
                copy.rows(table).append(row | place | named | here | plain)
            elif table == "passes":
                if (row["client"], row["session"], row["pass"]) in final:
                    ends = {"from_offset": low, "to_offset": end}
                    copy.rows(table).append(row | place | ends)
            elif table == "logs":
                ends = {"log_start": low, "log_end": end, "high_watermark": end}
                copy.rows(table).append(row | place | ends | {"active_base": None})
            elif row["leader_epoch"] is not None:
                path = f"/brokers/topics/{topic.name}/partitions/0/state"
                copy.rows(table).append(row | place | {"path": path})


def _key(copy: Copy, number: int) -> list[Row]:
    """The sends of one key."""
    sends = clone(copy, COMPACTED)
    return [row for row in sends if row["key"] == sends[number * EACH]["key"]]


def _remove_values(copy: Copy, sends: list[Row], *tables: str) -> None:
    values = {row["value_id"] for row in sends}
    for table in tables:
        copy.drop(table, lambda row: row["value_id"] in values)


@damage("drop the last value of a key", "latest_value_lost", "older shown")
def drop_latest(copy: Copy) -> Row:
    *_, last = _key(copy, 1)
    _remove_values(copy, [last], "replicas", "reads")
    return last


@damage("show an older value of a key", "stale_value_visible", "in a pass")
def show_stale(copy: Copy) -> Row:
    """One final pass ends with an older value of a key."""
    *_, before, last = _key(copy, 2)
    read = next(row for row in copy.rows("reads") if row["value_id"] == last["value_id"])
    copy.rows("reads").remove(read)
    return before


@damage("resurrect a deleted key", "resurrected_key", "in")
def resurrect(copy: Copy) -> Row:
    """A tombstone is gone, what it deleted is not."""
    *_, before, last = _key(copy, 3)
    last["tombstone"] = True
    _remove_values(copy, [last], "replicas", "reads")
    return before


@damage("drop a young tombstone", "tombstone_too_early", "absent")
def drop_tombstone(copy: Copy) -> int:
    """All of a deleted key is gone, and its tombstone too."""
    sends = _key(copy, 4)
    sends[-1]["tombstone"] = True
    _remove_values(copy, sends, "replicas", "reads")
    return int(sends[-1]["offset"])


@damage("clean a young record", "compacted_too_early", "")
def clean_too_early(copy: Copy) -> Row:
    oldest, *_ = _key(copy, 5)
    _remove_values(copy, [oldest], "replicas", "reads")
    return oldest


@damage("renumber a record", "offset_renumbered", "renumbered")
def renumber(copy: Copy) -> Row:
    """Cleaning closed the gap that an overwritten record left."""
    oldest, second, *_ = _key(copy, 6)
    _remove_values(copy, [oldest], "replicas", "reads")
    for table in ("replicas", "reads"):
        for row in copy.of(table, second):
            row["offset"] = oldest["offset"]
    return second


@damage("delete young records", "retained_too_short", "too early")
def delete_too_early(copy: Copy) -> int:
    """Retention took the first records, which were minutes old."""
    sends = clone(copy, RETAINED)
    start = sends[10]["offset"]
    for row in copy.rows("logs"):
        if row["topic_id"] == RETAINED.topic_id:
            row["log_start"] = start
    for row in copy.rows("passes"):
        if row["topic_id"] == RETAINED.topic_id:
            row["from_offset"] = start
    _remove_values(copy, sends[:10], "replicas", "reads")
    return int(sends[0]["offset"])


@damage("append a batch that is too large", "corrupt", "too large")
def append_too_large_batch(copy: Copy) -> Row:
    """The last batch is larger than its topic allows."""
    *_, last = clone(copy, RETAINED)
    for row in copy.of("replicas", last):
        row |= {"batch_base": last["offset"], "batch_bytes": 1_048_589}
    return last


@damage("keep a segment open for eight days", "segment_not_rolled", "not rolled")
def keep_segment_open(copy: Copy) -> Row:
    """Two batches of one segment are eight days apart, a day more than segment.ms."""
    *_, oldest, newest, _, _ = clone(copy, RETAINED)
    for send, days in ((oldest, 0), (newest, 8)):
        for row in copy.of("replicas", send):
            place = {"segment_base": oldest["offset"], "batch_base": send["offset"]}
            row |= place | {"timestamp_ms": days * 86_400_000}
    return oldest


@damage("keep more than retention.bytes", "kept_too_long", "too large")
def keep_too_much(copy: Copy) -> Row:
    """A log of two segments, the newer of which alone is far larger than retention.bytes."""
    oldest, second, *later = clone(copy, BOUNDED)
    for number, send in enumerate((oldest, second, *later)):
        base = oldest["offset"] if number == 0 else second["offset"]
        for row in copy.of("replicas", send):
            row |= {"segment_base": base, "batch_base": send["offset"], "batch_bytes": 1_048_576}
    return oldest


@damage("keep the log of a deleted topic", "leftover_log", "on disk")
def keep_log_of_deleted_topic(copy: Copy) -> None:
    """A broker has the log of a topic whose znodes are gone."""
    place = {"topic_id": DELETED, "topic": DELETED, "partition": 0}
    ends = {"log_start": 0, "log_end": 0, "high_watermark": 0, "epochs": None}
    copy.rows("logs").append(first(copy.rows("logs")) | place | ends)
    last = states(copy)[-1]
    deleted = {"path": f"/brokers/topics/{DELETED}/partitions/0/state", "version": -1}
    when = {"zxid": last["zxid"], "at_ns": last["at_ns"]}
    copy.rows("states").append(dict.fromkeys(last) | place | deleted | when)
