"""Damage to sends: their outcomes, offsets, sequences and places."""

from __future__ import annotations

from tests.harness.verify.histories.damage.piece import Piece, Unfit
from tests.harness.verify.histories.log import END_NS, Row
from urteil.harness.verify.damage import Trace


def write_an_unknown_one_twice(piece: Piece) -> Trace:
    """A record of unknown outcome of an idempotent producer is in the log twice."""
    victim = piece.victim(lambda row: bool(row["idempotent"]))
    partition = victim["partition"]
    end = max(row["log_end"] for row in piece.rows("logs") if row["partition"] == partition)
    victim |= {"outcome": "info", "offset": None, "ambiguous": True}
    for row in list(piece.of("replicas", victim)):
        piece.rows("replicas").append(row | {"offset": end, "batch_base": end, "sequence": -1})
    for row in piece.rows("logs"):
        if row["partition"] == partition:
            row |= {"log_end": end + 1, "high_watermark": end + 1}
    return Trace("duplicate", "log", victim_offset(piece, victim))


def victim_offset(piece: Piece, victim: Row) -> int:
    return min(int(row["offset"]) for row in piece.of("replicas", victim))


def keep_an_unknown_one_on_one_disk(piece: Piece) -> Trace:
    """A send of unknown outcome is on one replica only, below the high watermark."""
    victim = piece.victim()
    led = piece.leader(victim["partition"])
    keep = 1 + led % 3
    victim |= {"outcome": "info", "offset": None, "ambiguous": True}
    offset = victim_offset(piece, victim)
    piece.drop("replicas", lambda r: r["value_id"] == victim["value_id"] and r["broker"] != keep)
    piece.lose(victim, "reads")
    return Trace("replica_divergence", "missing", offset)


def show_an_unknown_one_to_some(piece: Piece) -> Trace:
    """Of unknown outcome: one final pass has it, the next does not."""
    victim = piece.victim()
    offset = victim["offset"]
    victim |= {"outcome": "info", "offset": None, "ambiguous": True}
    piece.rows("reads").remove(
        piece.pick(r for r in piece.of("reads", victim) if piece.is_final(r))
    )
    return Trace("vanished_read", "", offset)


def deny_what_is_there(piece: Piece) -> Trace:
    victim = piece.victim()
    offset = victim["offset"]
    victim |= {"outcome": "fail", "offset": None, "ambiguous": False, "error": "MESSAGE_TOO_LARGE"}
    return Trace("aborted_read", "", offset)


def forget_the_send(piece: Piece) -> Trace:
    victim = piece.victim()
    piece.lose(victim, "sends")
    return Trace("phantom", "no invocation", victim["offset"])


def write_to_another_partition(piece: Piece) -> Trace:
    victim = piece.victim()
    victim |= {"partition": 1 - victim["partition"], "partition_intended": 1 - victim["partition"]}
    return Trace("phantom", "another partition", victim["offset"])


def acknowledge_one_offset_twice(piece: Piece) -> Trace:
    victim = piece.victim()
    other = piece.pick(
        row
        for row in piece.sound()
        if row["partition"] == victim["partition"] and row["offset"] != victim["offset"]
    )
    other["offset"] = victim["offset"]
    return Trace("inconsistent_offset", "", victim["offset"])


def acknowledge_too_far(piece: Piece) -> Trace:
    """The acknowledged offset is one beyond the record's."""
    victim = piece.victim()
    victim["offset"] += 1
    return Trace("misplaced_ack", "elsewhere", victim["offset"])


def acknowledge_before_it_was_sent(piece: Piece) -> Trace:
    """Its offset is lower than one that was acknowledged long before its invocation."""
    ends = {row["partition"]: row["log_end"] for row in piece.rows("logs")}
    victim = piece.victim(lambda row: int(row["offset"]) < ends[row["partition"]] // 2)
    victim |= {"invoke_ns": END_NS - 2, "complete_ns": END_NS - 1}
    return Trace("stale_append", "real-time order", victim["offset"])


def repeat_a_sequence(piece: Piece) -> Trace:
    victim = piece.victim(lambda row: bool(row["idempotent"]))
    numbers = {row["sequence"] for row in piece.of("replicas", victim)}
    if numbers == {0}:
        raise Unfit
    for row in piece.of("replicas", victim):
        row["sequence"] += 100
    return Trace("sequence_gap", "", victim["offset"])


def lower_a_producer_epoch(piece: Piece) -> Trace:
    """A zombie's batch behind one of its successor."""
    ends: dict[tuple[int, int], Row] = {}
    for row in piece.rows("replicas"):
        if row["producer_epoch"] > 0 and row["control"] is None and not row["transactional"]:
            key = (row["partition"], row["producer_id"])
            ends[key] = max(row, ends.get(key, row), key=lambda end: int(end["offset"]))
    last = piece.pick(ends.values())
    before = [
        row
        for row in piece.rows("replicas")
        if row["producer_id"] == last["producer_id"] and row["offset"] < last["offset"]
        if row["partition"] == last["partition"]
    ]
    if not before or max(before, key=lambda r: int(r["offset"]))["producer_epoch"] == 0:
        raise Unfit
    for row in piece.of("replicas", last):
        row["producer_epoch"] = 0
    return Trace("sequence_gap", "epoch fell", last["offset"])
