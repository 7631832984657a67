"""Damage to the rows of clients: sends, reads, passes."""

from __future__ import annotations

from urteil.harness.verify.damage.copy import (
    Copy,
    S,
    Trace,
    Untried,
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


def lose(copy: Copy) -> Trace:
    victim = copy.take()
    copy.drop("replicas", has_value(victim))
    copy.drop("reads", has_value(victim))
    return Trace("lost_write", "", victim["offset"])


def lose_on_leader(copy: Copy) -> Trace:
    """Gone from every log but one that does not lead."""
    victim = copy.take()
    keep = followers(copy)[0]
    copy.drop("replicas", lambda row: has_value(victim)(row) and row["broker"] != keep)
    copy.drop("reads", has_value(victim))
    return Trace("lost_write", "", victim["offset"])


def stop_serving(copy: Copy) -> Trace:
    victim = copy.take()
    copy.drop("reads", lambda row: has_value(victim)(row) and copy.is_final(row))
    return Trace("lost_write", "not served", victim["offset"])


def shorten_passes(copy: Copy) -> Trace:
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
    return Trace("unseen", "beyond the end", victim["offset"])


def forget_invocation(copy: Copy) -> Trace:
    victim = copy.take()
    copy.drop("sends", has_value(victim))
    return Trace("phantom", "no invocation", victim["offset"])


def change_key(copy: Copy) -> Trace:
    victim = copy.take()
    for row in copy.of("reads", victim)[:1]:
        row["key"] = f"not-{row['key']}"
    return Trace("phantom", "another key", victim["offset"])


def break_read(copy: Copy) -> Trace:
    victim = copy.take()
    copy.of("reads", victim)[0]["intact"] = False
    return Trace("corrupt", "served", victim["offset"])


def break_disk(copy: Copy) -> Trace:
    victim = copy.take()
    copy.of("replicas", victim)[0]["intact"] = False
    return Trace("corrupt", "on disk", victim["offset"])


def break_batch(copy: Copy) -> Trace:
    """A reader refused the whole batch that it was given."""
    victim = copy.take()
    read = copy.of("reads", victim)[0]
    here = {name: read[name] for name in ("client", "session", "topic_id", "topic", "partition")}
    poll = {"poll": read["poll"], "invoke_ns": read["read_ns"], "complete_ns": read["read_ns"]}
    poll |= {"position_before": victim["offset"], "position_after": None, "event": None}
    copy.rows("polls").append(
        here | poll | {"outcome": "fail", "error": "CorruptRecordError", "run": read.get("run")}
    )
    return Trace("corrupt", "batch", victim["offset"])


def change_time(copy: Copy) -> Trace:
    """A reader received another time than the record was sent with, and saw no error."""
    tools = {row["client"] for row in copy.rows("clients") if row["library"] == "verifiable"}
    victim = copy.take(lambda one: one["timestamp_ms"] is not None and one["client"] not in tools)
    row = copy.of("reads", victim)[0]
    if row["timestamp_ms"] != victim["timestamp_ms"]:
        raise Untried("the record's time is not the client's")
    row["timestamp_ms"] += 1
    return Trace("corrupt", "served", victim["offset"])


def change_shown_epoch(copy: Copy) -> Trace:
    """A reader received a leader epoch that never existed."""
    victim = copy.take()
    row = copy.of("reads", victim)[0]
    if row["leader_epoch"] is None or "{}" in {one["epochs"] or "{}" for one in copy.rows("logs")}:
        raise Untried("no client journals epochs")
    row["leader_epoch"] = NEVER_LED
    return Trace("epoch_lineage", "read", victim["offset"])


def append_again(copy: Copy) -> Trace:
    """A retry that was appended once more, at the end of every log."""
    victim = copy.take()
    end = max(row["log_end"] for row in copy.rows("logs"))
    logs = [row for row in copy.rows("logs") if row["log_end"] == end]
    whole = {row["broker"] for row in logs}
    copy.rows("replicas").extend(
        row | {"offset": end, "batch_base": end}
        for row in copy.of("replicas", victim)
        if row["broker"] in whole
    )
    for row in logs:
        row["log_end"] = end + 1
    return Trace("duplicate", "log", victim["offset"])


def show_another(copy: Copy) -> Trace:
    """A reader was shown another record at that offset."""
    victim, other = copy.take(), copy.take()
    row = copy.of("reads", victim)[0]
    row["value_id"], row["key"] = other["value_id"], other["key"]
    return Trace("inconsistent_offset", "read", victim["offset"])


def swap_acks(copy: Copy) -> Trace:
    """Two acknowledgements that name each other's offset."""
    victim, other = copy.take(), copy.take()
    victim["offset"], other["offset"] = other["offset"], victim["offset"]
    return Trace("misplaced_ack", "elsewhere", victim["offset"])


def _writer(copy: Copy, victim: Row) -> tuple[object, ...]:
    written = first(copy.of("replicas", victim))
    return victim["client"], written["producer_id"], written["producer_epoch"]


def swap_order(copy: Copy) -> Trace:
    """Two records of one epoch of a producer in the wrong order, everywhere."""
    victim = copy.take()
    who = _writer(copy, victim)
    other = first(row for row in copy.victims if _writer(copy, row) == who)
    del copy.victims[: copy.victims.index(other) + 3]
    place = victim["offset"]
    moved = {victim["value_id"]: other["offset"], other["value_id"]: place}
    for table in ("sends", "reads", "replicas"):
        for row in copy.rows(table):
            row["offset"] = moved.get(row["value_id"], row["offset"])
    return Trace("reordered_send", "inverted", place)


def hide_from_one_pass(copy: Copy) -> Trace:
    victim = copy.take()
    read = first(row for row in copy.of("reads", victim) if copy.is_final(row))
    copy.rows("reads").remove(read)
    return Trace("vanished_read", "", victim["offset"])


def skip_in_tail(copy: Copy) -> Trace:
    victim = copy.take(lambda victim: bool(_reads_amid_others(copy, victim)))
    copy.rows("reads").remove(_reads_amid_others(copy, victim)[0])
    return Trace("poll_skip", "gap", victim["offset"])


def _reads_amid_others(copy: Copy, victim: Row) -> list[Row]:
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


def go_back_in_tail(copy: Copy) -> Trace:
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
    return Trace("nonmonotonic_poll", "reads", victim["offset"])


def _same_poll(left: Row, right: Row) -> bool:
    return all(left[name] == right[name] for name in ("client", "session", "pass", "poll"))


def send_later(copy: Copy) -> Trace:
    """A send that began after later offsets had been acknowledged."""
    victim = copy.take()
    victim["invoke_ns"] = copy.last_ns + 1
    victim["complete_ns"] = copy.last_ns + 2
    return Trace("stale_append", "real-time order", victim["offset"])


def read_earlier(copy: Copy) -> Trace:
    victim = copy.take()
    copy.of("reads", victim)[0]["read_ns"] = victim["invoke_ns"] - S
    return Trace("future_read", "before its send", victim["offset"])


def deny(copy: Copy) -> Trace:
    victim = copy.take()
    victim |= {"outcome": "fail", "ambiguous": False, "error": "MADE_UP"}
    return Trace("aborted_read", "read", victim["offset"])


def other_node(copy: Copy) -> Trace:
    victim = copy.take()
    last = states(copy)[-1]
    for row in copy.of("replicas", victim):
        row["leader_epoch"] = last["leader_epoch"]
    victim |= {"node": last["leader"] + 1000, "attempts": 1}
    return Trace("two_leaders", "not the leader", victim["offset"])


def other_partition(copy: Copy) -> Trace:
    if copy.partitions < 2:
        raise Untried("the topic has one partition")
    victim = copy.take()
    victim["partition"] = (victim["partition"] + 1) % copy.partitions
    return Trace("phantom", "another partition", victim["offset"])
