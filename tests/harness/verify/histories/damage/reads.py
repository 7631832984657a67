"""Damage to single records that were read."""

from __future__ import annotations

from tests.harness.verify.histories.damage.piece import Piece, Unfit
from urteil.harness.verify.damage import Trace


def show_another_record(piece: Piece) -> Trace:
    victim, other = piece.victim(), piece.victim()
    if victim is other or victim["partition"] != other["partition"]:
        raise Unfit
    read = piece.pick(piece.of("reads", victim))
    read |= {"value_id": other["value_id"], "key": other["key"]}
    return Trace("inconsistent_offset", "read", victim["offset"])


def break_a_read(piece: Piece) -> Trace:
    read = piece.pick(piece.of("reads", piece.victim()))
    read["intact"] = False
    return Trace("corrupt", "served", read["offset"])


def change_a_time(piece: Piece) -> Trace:
    read = piece.pick(piece.of("reads", piece.victim()))
    read["timestamp_ms"] += piece.random.choice((-1, 1, 60_000))
    return Trace("corrupt", "served", read["offset"])


def change_a_time_on_all_disks(piece: Piece) -> Trace:
    victim = piece.victim(lambda row: row["attempts"] == 1)
    for row in piece.of("replicas", victim):
        row["timestamp_ms"] += 1
    return Trace("corrupt", "on disk", victim["offset"])


def change_an_epoch(piece: Piece) -> Trace:
    read = piece.pick(piece.of("reads", piece.victim()))
    read["leader_epoch"] = 1000  # none ever was
    return Trace("epoch_lineage", "read", read["offset"])


def change_a_key(piece: Piece) -> Trace:
    victim = piece.victim()
    piece.pick(piece.of("replicas", victim))["key"] = "another"
    return Trace("phantom", "another key", victim["offset"])


def read_before_the_send(piece: Piece) -> Trace:
    read = piece.pick(piece.of("reads", piece.victim()))
    read["read_ns"] = piece.of("sends", read)[0]["invoke_ns"] - 1
    return Trace("future_read", "before its send", read["offset"])


def deliver_twice_in_a_pass(piece: Piece) -> Trace:
    victim = piece.victim()
    read = piece.pick(r for r in piece.of("reads", victim) if piece.is_final(r))
    for row in piece.rows("reads"):
        same = all(row[name] == read[name] for name in ("client", "session", "poll"))
        row["position_in_poll"] += same and row["position_in_poll"] > read["position_in_poll"]
    again = {"position_in_poll": read["position_in_poll"] + 1}
    piece.rows("reads").append(read | again)
    return Trace("duplicate", "one offset twice", victim["offset"])


def show_an_aborted_record(piece: Piece) -> Trace:
    """A reader of committed records receives a record of an aborted transaction."""
    aborted = {
        (row["client"], row["session"], row["txn"])
        for row in piece.rows("txns")
        if row["outcome"] == "aborted"
    }
    sends = {
        row["value_id"]
        for row in piece.rows("sends")
        if (row["client"], row["session"], row["txn"]) in aborted
    }
    read = piece.pick(
        row for row in piece.rows("reads") if row["value_id"] in sends and piece.is_final(row)
    )
    client = f"{piece.topic}-final-read_committed"
    reads = [row for row in piece.rows("reads") if row["client"] == client]
    other = piece.pick(row for row in reads if row["partition"] == read["partition"])
    where = {name: other[name] for name in ("client", "pass", "poll", "read_ns")}
    piece.rows("reads").append(read | where | {"position_in_poll": 10_000})
    return Trace("aborted_read", "aborted transaction", read["offset"])
