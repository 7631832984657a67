"""Damage to the rows of clients: sends, reads, passes."""

from __future__ import annotations

from urteil.harness.verify.damage.copy import (
    Copy,
    S,
    Untried,
    damage,
    first,
    followers,
    has_value,
    states,
)
from urteil.harness.verify.evidence import Row

NEVER_LED = 1 << 30
"""A leader epoch."""
NEAR = 3
"""Offsets between a read and its neighbours, markers of transactions among them."""


@damage("drop a record everywhere", "lost_write", "")
def drop_record(copy: Copy) -> Row:
    victim = copy.take()
    copy.drop("replicas", has_value(victim))
    copy.drop("reads", has_value(victim))
    return victim


@damage("keep a record on one follower only", "lost_write", "", replicas=2)
def keep_on_one_follower(copy: Copy) -> Row:
    """Gone from every log but one that does not lead."""
    victim = copy.take()
    keep = followers(copy)[0]
    copy.drop("replicas", lambda row: has_value(victim)(row) and row["broker"] != keep)
    copy.drop("reads", has_value(victim))
    return victim


@damage("drop a record from the final passes", "lost_write", "not served")
def drop_from_final_passes(copy: Copy) -> Row:
    victim = copy.take()
    copy.drop("reads", lambda row: has_value(victim)(row) and copy.is_final(row))
    return victim


@damage("end the final passes too early", "unseen", "beyond the end", at_the_ends=True)
def shorten_passes(copy: Copy) -> Row:
    """Final passes end below an acknowledged offset."""
    victim = copy.victims.pop()
    for row in copy.rows("passes"):
        row["to_offset"] = min(row["to_offset"], victim["offset"])
    final = copy.final_passes()
    copy.drop(
        "reads",
        lambda row: (
            row["offset"] >= victim["offset"]
            and (row["client"], row["session"], row["pass"]) in final
        ),
    )
    return victim


@damage("drop an invocation", "phantom", "no invocation")
def drop_invocation(copy: Copy) -> Row:
    victim = copy.take()
    copy.drop("sends", has_value(victim))
    return victim


@damage("change a key", "phantom", "another key")
def change_key(copy: Copy) -> Row:
    victim = copy.take()
    for row in copy.of("reads", victim)[:1]:
        row["key"] = f"not-{row['key']}"
    return victim


@damage("break the checksum of a read", "corrupt", "served")
def break_read(copy: Copy) -> Row:
    victim = copy.take()
    copy.of("reads", victim)[0]["intact"] = False
    return victim


@damage("break the checksum of a replica's record", "corrupt", "on disk")
def break_replica(copy: Copy) -> Row:
    victim = copy.take()
    copy.of("replicas", victim)[0]["intact"] = False
    return victim


@damage("give a reader a damaged batch", "corrupt", "batch")
def break_batch(copy: Copy) -> Row:
    """A reader refused the whole batch that it was given."""
    victim = copy.take()
    read = copy.of("reads", victim)[0]
    here = {name: read[name] for name in ("client", "session", "topic_id", "topic", "partition")}
    poll = {"poll": read["poll"], "invoke_ns": read["read_ns"], "complete_ns": read["read_ns"]}
    poll |= {"position_before": victim["offset"], "position_after": None, "event": None}
    copy.rows("polls").append(
        here | poll | {"outcome": "fail", "error": "CorruptRecordError", "run": read.get("run")}
    )
    return victim


@damage("change the time of a read", "corrupt", "served")
def change_time(copy: Copy) -> Row:
    """A reader received another time than the record was sent with, and saw no error."""
    tools = {row["client"] for row in copy.rows("clients") if row["library"] == "verifiable"}
    victim = copy.take(lambda row: row["timestamp_ms"] is not None and row["client"] not in tools)
    row = copy.of("reads", victim)[0]
    if row["timestamp_ms"] != victim["timestamp_ms"]:
        raise Untried("the record's time is not the client's")
    row["timestamp_ms"] += 1
    return victim


@damage("change the leader epoch of a read", "epoch_lineage", "read")
def change_epoch_of_read(copy: Copy) -> Row:
    """A reader received a leader epoch that never existed."""
    victim = copy.take()
    row = copy.of("reads", victim)[0]
    if row["leader_epoch"] is None or "{}" in {row["epochs"] or "{}" for row in copy.rows("logs")}:
        raise Untried("no client journals epochs")
    row["leader_epoch"] = NEVER_LED
    return victim


@damage("append a record again", "duplicate", "log")
def append_again(copy: Copy) -> Row:
    """A retry that was appended once more, at the end of every log."""
    victim = copy.take()
    end = max(row["log_end"] for row in copy.rows("logs"))
    logs = [row for row in copy.rows("logs") if row["log_end"] == end]
    complete_brokers = {row["broker"] for row in logs}
    copy.rows("replicas").extend(
        row | {"offset": end, "batch_base": end}
        for row in copy.of("replicas", victim)
        if row["broker"] in complete_brokers
    )
    for row in logs:
        row["log_end"] = end + 1
    return victim


@damage("show another record at an offset", "inconsistent_offset", "read")
def show_another(copy: Copy) -> Row:
    """A reader was shown another record at that offset."""
    victim, other = copy.take(), copy.take()
    row = copy.of("reads", victim)[0]
    row["value_id"], row["key"] = other["value_id"], other["key"]
    return victim


@damage("swap the offsets of two acknowledgements", "misplaced_ack", "elsewhere")
def swap_acks(copy: Copy) -> Row:
    """Two acknowledgements that name each other's offset."""
    victim, other = copy.take(), copy.take()
    victim["offset"], other["offset"] = other["offset"], victim["offset"]
    return victim


def _writer(copy: Copy, victim: Row) -> tuple[object, ...]:
    written = first(copy.of("replicas", victim))
    return victim["client"], written["producer_id"], written["producer_epoch"]


@damage("swap two records of one producer", "reordered_send", "inverted")
def swap_records(copy: Copy) -> int:
    """Two records of one epoch of a producer in the wrong order, everywhere."""
    victim = copy.take()
    writer = _writer(copy, victim)
    other = first(row for row in copy.victims if _writer(copy, row) == writer)
    del copy.victims[: copy.victims.index(other) + 3]
    place = victim["offset"]
    moved = {victim["value_id"]: other["offset"], other["value_id"]: place}
    for table in ("sends", "reads", "replicas"):
        for row in copy.rows(table):
            row["offset"] = moved.get(row["value_id"], row["offset"])
    return int(place)


@damage("hide a record from one final pass", "vanished_read", "")
def hide_from_one_pass(copy: Copy) -> Row:
    victim = copy.take()
    read = first(row for row in copy.of("reads", victim) if copy.is_final(row))
    copy.rows("reads").remove(read)
    return victim


@damage("drop a read of a consumer", "poll_skip", "gap", tail=True)
def skip_in_tail(copy: Copy) -> Row:
    victim = copy.take(lambda victim: bool(reads_amid_others(copy, victim)))
    copy.rows("reads").remove(reads_amid_others(copy, victim)[0])
    return victim


def reads_amid_others(copy: Copy, victim: Row) -> list[Row]:
    """Its reads by consumers with others of their sweep right before and after, by one owner."""
    return [
        read
        for read in copy.of("reads", victim)
        if not copy.is_final(read) and _is_amid_others(copy, read)
    ]


def _is_amid_others(copy: Copy, read: Row) -> bool:
    near = [
        row
        for row in copy.rows("reads")
        if abs(row["offset"] - read["offset"]) <= NEAR and _same_sweep(row, read)
    ]
    times = [row["read_ns"] for row in near]
    moved = any(
        row["client"] == read["client"] and min(times) <= row["at_ns"] <= max(times)
        for row in copy.rows("assignments")
    )
    offsets = [row["offset"] for row in near]
    return not moved and min(offsets) < read["offset"] < max(offsets)


def _same_sweep(left: Row, right: Row) -> bool:
    return all(left[name] == right[name] for name in ("client", "session", "pass", "generation"))


@damage("give a consumer a record again", "nonmonotonic_poll", "reads", tail=True)
def repeat_in_tail(copy: Copy) -> Row:
    """A consumer is given an earlier record once more."""
    victim = copy.take()
    read = first(row for row in copy.of("reads", victim) if not copy.is_final(row))
    follower = next(
        (
            row
            for row in copy.rows("reads")
            if row["client"] == read["client"] and row["offset"] == read["offset"] + 2
            if row["session"] == read["session"] and row["pass"] == read["pass"]
        ),
        read,
    )
    again = read | {"poll": follower["poll"], "position_in_poll": follower["position_in_poll"]}
    follower["position_in_poll"] += 1
    for row in copy.rows("reads"):
        if row is not follower and _same_poll(row, follower) and row["offset"] > follower["offset"]:
            row["position_in_poll"] += 1
    copy.rows("reads").append(again)
    return victim


def _same_poll(left: Row, right: Row) -> bool:
    return all(left[name] == right[name] for name in ("client", "session", "pass", "poll"))


@damage("begin a send after later ones ended", "stale_append", "real-time order")
def send_later(copy: Copy) -> Row:
    """A send that began after later offsets had been acknowledged."""
    victim = copy.take()
    victim["invoke_ns"] = copy.last_ns + 1
    victim["complete_ns"] = copy.last_ns + 2
    return victim


@damage("read a record before its send", "future_read", "before its send")
def read_before_send(copy: Copy) -> Row:
    victim = copy.take()
    copy.of("reads", victim)[0]["read_ns"] = victim["invoke_ns"] - S
    return victim


@damage("report an appended send as failed", "aborted_read", "read")
def report_failure(copy: Copy) -> Row:
    victim = copy.take()
    victim |= {"outcome": "fail", "ambiguous": False, "error": "MADE_UP"}
    return victim


@damage("acknowledge from another broker", "two_leaders", "not the leader")
def acknowledge_from_another_broker(copy: Copy) -> Row:
    victim = copy.take()
    last = states(copy)[-1]
    for row in copy.of("replicas", victim):
        row["leader_epoch"] = last["leader_epoch"]
    victim |= {"node": last["leader"] + 1000, "attempts": 1}
    return victim


@damage("send a record to another partition", "phantom", "another partition")
def send_to_another_partition(copy: Copy) -> Row:
    if copy.partitions < 2:
        raise Untried("the topic has one partition")
    victim = copy.take()
    victim["partition"] = (victim["partition"] + 1) % copy.partitions
    return victim
