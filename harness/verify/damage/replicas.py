"""Damage to what lies on the brokers' disks."""

from __future__ import annotations

import json

from urteil.harness.verify.damage.copy import Copy, Untried, damage, first, followers, leader
from urteil.harness.verify.evidence import Row

NO_EPOCH = 500_000


@damage("drop a record of one follower", "replica_divergence", "missing", replicas=2)
def drop_on_follower(copy: Copy) -> Row:
    victim = copy.take()
    copy.rows("replicas").remove(_on_follower(copy, victim))
    return victim


@damage("change a batch's CRC on one follower", "replica_divergence", "bytes", replicas=2)
def change_crc(copy: Copy) -> Row:
    victim = copy.take()
    _on_follower(copy, victim)["batch_crc"] ^= 1
    return victim


@damage("change a producer on one follower", "replica_divergence", "bytes", replicas=2)
def change_producer(copy: Copy) -> Row:
    victim = copy.take()
    row = _on_follower(copy, victim)
    row["producer_id"] = (row["producer_id"] or 0) + 1
    return victim


@damage("change a leader epoch on one follower", "replica_divergence", "leader epoch", replicas=2)
def change_leader_epoch(copy: Copy) -> Row:
    victim = copy.take()
    row = _on_follower(copy, victim)
    if row["leader_epoch"] < 0:
        raise Untried("records have no leader epochs")
    row["leader_epoch"] += 1
    return victim


@damage("write in a leader epoch that never existed", "epoch_lineage", "of none")
def write_in_unknown_epoch(copy: Copy) -> Row:
    """A record of a leader epoch that no log knows, on all replicas alike."""
    log = first(row for row in copy.rows("logs") if row["broker"] == leader(copy))
    known = json.loads(log["epochs"] or "{}").values()
    victim = copy.take(lambda row: any(start <= row["offset"] for start in known))
    for row in copy.of("replicas", victim):
        row["leader_epoch"] += NO_EPOCH
    return victim


@damage("change a record on one follower", "replica_divergence", "content", replicas=2)
def change_content(copy: Copy) -> Row:
    victim, other = copy.take(), copy.take()
    _on_follower(copy, victim)["value_id"] = other["value_id"]
    return victim


def _on_follower(copy: Copy, victim: Row) -> Row:
    return first(row for row in copy.of("replicas", victim) if row["broker"] != leader(copy))


@damage(
    "end a follower's log too early", "replica_divergence", "short", replicas=2, at_the_ends=True
)
def cut_follower(copy: Copy) -> int:
    """A member of the ISR, also of the short one of `stay_broken`, whose log ends below the
    leader's high watermark."""
    broker = followers(copy)[0]
    follower = first(row for row in copy.rows("logs") if row["broker"] == broker)
    del copy.victims[-4:]
    follower["log_end"] -= 3
    end = follower["log_end"]
    for column in ("high_watermark", "recovery_point"):
        follower[column] = min(follower[column] or 0, end)
    copy.drop("replicas", lambda row: row["broker"] == broker and row["offset"] >= end)
    return int(end)


@damage(
    "move a high watermark beyond its log",
    "replica_divergence",
    "beyond its end",
    replicas=2,
    at_the_ends=True,
)
def raise_high_watermark(copy: Copy) -> int:
    """A high watermark beyond the end of its log, on a member of the ISR."""
    broker = followers(copy)[0]
    follower = first(row for row in copy.rows("logs") if row["broker"] == broker)
    follower["high_watermark"] = follower["log_end"] + 5
    return int(follower["log_end"])


@damage("open a hole in one log", "hole", "gap", replicas=2)
def open_hole(copy: Copy) -> Row:
    """Right after a record: next to a gap that compaction left, one hole would begin with the
    other."""
    there = {(row["broker"], row["offset"]) for row in copy.rows("replicas")}
    victim = copy.take(lambda row: (_on_follower(copy, row)["broker"], row["offset"] - 1) in there)
    copy.rows("replicas").remove(_on_follower(copy, victim))
    return victim


@damage("repeat an offset in one log", "hole", "overlap", replicas=2)
def repeat_on_disk(copy: Copy) -> int:
    victim = copy.take()
    copy.rows("replicas").append(dict(_on_follower(copy, victim)))
    return int(victim["offset"] + 1)


@damage("strip a producer from a record", "sequence_gap", "stripped")
def strip_producer(copy: Copy) -> Row:
    """A leader wrote a batch without its producer's id, and so its followers did."""
    victim = copy.take()
    written = copy.of("replicas", victim)
    known = first(written)["producer_id"]
    if known is None or known < 0:
        raise Untried("no producer has an id")
    victim["producer_id"] = known
    for row in written:
        row |= dict.fromkeys(("producer_id", "producer_epoch", "sequence"))
    return victim


@damage("break a sequence", "sequence_gap", "gap")
def break_sequence(copy: Copy) -> Row:
    victim = copy.take(lambda victim: _follows(copy, victim))
    if any(row["sequence"] is None or row["sequence"] < 0 for row in copy.of("replicas", victim)):
        raise Untried("the producers are not idempotent")
    for row in copy.of("replicas", victim):
        row["sequence"] += 7
    return victim


def _follows(copy: Copy, victim: Row) -> bool:
    """Whether an earlier record of its producer and epoch determines its sequence."""
    leader_copy = first(copy.of("replicas", victim))
    return any(
        row["producer_id"] == leader_copy["producer_id"]
        and row["producer_epoch"] == leader_copy["producer_epoch"]
        and row["offset"] < leader_copy["offset"]
        and row["control"] is None
        for row in copy.rows("replicas")
    )


@damage("let an epoch start at two offsets", "epoch_lineage", "two starts", replicas=2)
def fork_epoch(copy: Copy) -> Row:
    victim = copy.take()
    for n, row in enumerate(copy.rows("logs")):
        epochs = json.loads(row["epochs"] or "{}")
        row["epochs"] = json.dumps(epochs | {"1000000": victim["offset"] + n})
    return victim
