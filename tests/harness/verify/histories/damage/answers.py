"""Damage to the offsets that brokers returned."""

from __future__ import annotations

from typing import Any

from tests.harness.verify.histories.damage.piece import Piece, Unfit
from tests.harness.verify.histories.log import END_NS, S
from urteil.harness.verify.damage import Trace


def _answer(piece: Piece, partition: int, **reported: Any) -> None:
    last = piece.states(partition)[-1]
    at_ns = END_NS + 50 * S + 2 * len(piece.rows("offset_answers"))
    answer = {name: last[name] for name in ("run", "topic_id", "topic", "partition")}
    answer |= {"node": last["leader"], "leader_epoch": last["leader_epoch"], "api_version": 7}
    piece.rows("offset_answers").append(
        answer | {"invoke_ns": at_ns, "complete_ns": at_ns + 1} | reported
    )


def find_no_time(piece: Piece) -> Trace:
    victim = piece.victim()
    stamp_ms = max(row["timestamp_ms"] for row in piece.of("replicas", victim))
    _answer(piece, victim["partition"], query=f"time:{stamp_ms}", offset=-1)
    return Trace("time_index_wrong", "none", -1)


def find_a_time_too_early(piece: Piece) -> Trace:
    victim = piece.victim()
    stamps = {row["offset"]: row["timestamp_ms"] for row in piece.rows("replicas")
              if row["partition"] == victim["partition"]}  # fmt: skip
    asked_ms = stamps[victim["offset"]]
    before = [offset for offset, stamp in stamps.items() if stamp < asked_ms]
    if not before:
        raise Unfit
    _answer(piece, victim["partition"], query=f"time:{asked_ms}", offset=max(before))
    return Trace("time_index_wrong", "too early", max(before))


def let_the_end_fall(piece: Piece) -> Trace:
    log = piece.pick(piece.rows("logs"))
    _answer(piece, log["partition"], query="latest", offset=log["log_end"])
    _answer(piece, log["partition"], query="latest", offset=log["log_end"] - 1)
    return Trace("latest_went_back", "fell", log["log_end"] - 1)


def let_the_stable_end_fall(piece: Piece) -> Trace:
    log = piece.pick(piece.rows("logs"))
    _answer(piece, log["partition"], query="stable", offset=log["log_end"])
    _answer(piece, log["partition"], query="stable", offset=log["log_end"] - 1)
    return Trace("latest_went_back", "stable fell", log["log_end"] - 1)


def tell_an_end_below_an_ack(piece: Piece) -> Trace:
    victim = piece.victim()
    _answer(piece, victim["partition"], query="latest, once more", offset=victim["offset"])
    return Trace("end_below_ack", "behind", victim["offset"])


def answer_as_another_leader(piece: Piece) -> Trace:
    log = piece.pick(piece.rows("logs"))
    led = piece.leader(log["partition"])
    _answer(piece, log["partition"], query="latest", offset=log["log_end"], node=1 + led % 3)
    return Trace("disagreement", "another leads", None)
