"""Damage that loses sent records, from logs, disks or reads."""

from __future__ import annotations

import json

from tests.harness.verify.histories.damage.piece import Piece, Unfit
from tests.harness.verify.histories.log import Row, S
from urteil.harness.verify.damage import Trace


def lose_the_tail(piece: Piece) -> Trace:
    """Every log ends earlier than it did, and nothing else is missing."""
    partition = piece.random.choice((0, 1))
    cut = max((r["offset"] for r in piece.sound() if r["partition"] == partition), default=None)
    if cut is None:
        raise Unfit
    for table in ("reads", "replicas"):
        piece.drop(table, lambda row: row["partition"] == partition and row["offset"] >= cut)
    for row in piece.rows("logs"):
        if row["partition"] == partition:
            epochs = {e: min(at, cut) for e, at in json.loads(row["epochs"]).items()}
            row |= {"log_end": cut, "high_watermark": cut, "epochs": json.dumps(epochs)}
    for row in piece.rows("passes"):
        if row["partition"] == partition:
            row["to_offset"] = min(row["to_offset"], cut)
    return Trace("lost_write", "tail", cut)


def lose_in_the_middle(piece: Piece) -> Trace:
    victim = piece.victim()
    piece.lose(victim)
    return Trace("lost_write", "", victim["offset"])


def lose_what_was_read_once(piece: Piece) -> Trace:
    """A record of unknown outcome that a live reader received is in no log at the end."""
    read = piece.pick(
        r for r in piece.rows("reads") if not piece.is_final(r) and _is_sound(piece, r)
    )
    send = piece.of("sends", read)[0]
    send |= {"outcome": "info", "offset": None, "ambiguous": True, "error": "KafkaTimeoutError"}
    for table in ("reads", "replicas"):
        piece.drop(table, lambda row: row["value_id"] == send["value_id"] and row is not read)
    return Trace("lost_write", "", read["offset"])


def _is_sound(piece: Piece, read: Row) -> bool:
    return any(row["value_id"] == read["value_id"] for row in piece.sound())


def lose_without_an_offset(piece: Piece) -> Trace:
    """A lost record was acknowledged as a duplicate whose offset the broker did not know."""
    victim = piece.victim()
    piece.lose(victim)
    victim["offset"] = None
    return Trace("lost_write", "unplaced", None)


def lose_under_acks_one(piece: Piece) -> Trace:
    """A replicated record with acks=1, sent at least 3 s from each change of leadership."""
    stored = {row["value_id"] for row in piece.rows("replicas")}
    victim = piece.pick(
        row
        for row in piece.rows("sends")
        if row["acks"] == 1 and row["outcome"] == "ok" and row["value_id"] in stored
        if all(replica["offset"] == row["offset"] for replica in piece.of("replicas", row))
        if not any(
            abs(state["at_ns"] - row["invoke_ns"]) < 3 * S
            for state in piece.states(row["partition"])
        )
    )
    piece.lose(victim)
    return Trace("lost_write", "", victim["offset"])


def lose_at_the_leader(piece: Piece) -> Trace:
    victim = piece.victim()
    led = piece.leader(victim["partition"])
    piece.drop("replicas", lambda r: r["value_id"] == victim["value_id"] and r["broker"] == led)
    piece.lose(victim, "reads")
    return Trace("lost_write", "", victim["offset"])


def serve_no_more(piece: Piece) -> Trace:
    victim = piece.victim()
    piece.drop("reads", lambda r: r["value_id"] == victim["value_id"] and piece.is_final(r))
    return Trace("lost_write", "not served", victim["offset"])
