"""Damage to ZooKeeper's states of leaders, epochs and in-sync replicas."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.harness.verify.histories.damage.piece import Piece
from tests.harness.verify.histories.log import MS, Row, S
from urteil.harness.verify.damage import Trace


def _state(piece: Piece, partition: int, **reported: Any) -> Row:
    last = piece.states(partition)[-1]
    after = {"zxid": last["zxid"] + 100_000, "version": last["version"] + 1}
    state = last | after | {"at_ns": last["at_ns"] + S} | reported
    piece.rows("states").append(state)
    return state


def acknowledge_below_min_isr(piece: Piece) -> Trace:
    """Acknowledged by a leader whose ISR had long contained it alone."""
    alone = [
        (before, two)
        for partition in (0, 1)
        for before, two in pairwise(piece.states(partition))
        if "," not in before["isr"] and two["at_ns"] - before["at_ns"] > S + 300 * MS
    ]
    victim, led = piece.pick(
        (row, state["leader"])
        for state, two in alone
        for row in piece.rows("sends")
        if row["partition"] == state["partition"] and row["error"] == "NOT_ENOUGH_REPLICAS"
        if row["invoke_ns"] > state["at_ns"] + S and row["complete_ns"] < two["at_ns"] - 250 * MS
    )
    victim |= {"outcome": "ok", "error": None, "offset": 7, "node": led}
    return Trace("ack_below_min_isr", "acknowledged", 7)


def elect_from_outside(piece: Piece) -> Trace:
    epoch = piece.states(0)[-1]["leader_epoch"]
    led = piece.leader(0)
    outside = 1 + led % 3
    others = [broker for broker in (1, 2, 3) if broker != outside]
    _state(piece, 0, isr=str(others))
    _state(piece, 0, leader=outside, leader_epoch=epoch + 1, isr="[1, 2, 3]")
    _state(piece, 0, leader=led, leader_epoch=epoch + 2, isr="[1, 2, 3]")
    return Trace("unclean_leader", "outside the ISR", None)


def lead_from_outside_its_isr(piece: Piece) -> Trace:
    led = piece.leader(0)
    _state(piece, 0, isr=str([broker for broker in (1, 2, 3) if broker != led]))
    return Trace("unclean_leader", "outside its own ISR", None)


def lead_twice_in_an_epoch(piece: Piece) -> Trace:
    led = piece.leader(1)
    _state(piece, 1, leader=1 + led % 3)
    _state(piece, 1, leader=led, leader_epoch=piece.states(1)[-1]["leader_epoch"] + 1)
    return Trace("two_leaders", "two in one epoch", None)


def lower_an_epoch(piece: Piece) -> Trace:
    _state(piece, 0, leader_epoch=piece.states(0)[-1]["leader_epoch"] - 1)
    return Trace("epoch_went_back", "leader", None)


def acknowledge_by_another(piece: Piece) -> Trace:
    victim = piece.victim(lambda row: row["attempts"] == 1)
    victim["node"] = 1 + victim["node"] % 3
    return Trace("two_leaders", "", None)
