"""Damage that a cleaner would do to a compacted topic."""

from __future__ import annotations

from tests.harness.verify.histories.damage.piece import Piece, Unfit
from tests.harness.verify.histories.history import FAR
from tests.harness.verify.histories.log import Row
from urteil.harness.verify.damage import Trace


def _of_keys(piece: Piece) -> dict[tuple[int, str], list[Row]]:
    """Sends of every key that is resolved, in log order."""
    keys: dict[tuple[int, str], list[Row]] = {}
    for row in piece.rows("sends"):
        keys.setdefault((row["partition"], row["key"]), []).append(row)
    placed = {row["value_id"]: int(row["offset"]) for row in piece.rows("replicas")}
    return {
        key: sorted(
            (row for row in rows if row["outcome"] == "ok"),
            key=lambda row: int(row["offset"] or placed.get(row["value_id"], -1)),
        )
        for key, rows in keys.items()
        if all(row["outcome"] == "fail" or row["offset"] is not None for row in rows)
    }


def _last_of_a_key(piece: Piece, *, tombstone: bool, far: bool | None = None) -> list[Row]:
    return piece.pick(
        rows
        for rows in _of_keys(piece).values()
        if rows and bool(rows[-1]["tombstone"]) == tombstone
        if far is None or (rows[-1]["offset"] >= FAR) == far
    )


def clean_the_last_value(piece: Piece) -> Trace:
    *_, last = _last_of_a_key(piece, tombstone=False)
    piece.lose(last)
    return Trace("latest_value_lost", "", last["offset"])


def clean_the_last_value_on_a_follower(piece: Piece) -> Trace:
    *_, last = _last_of_a_key(piece, tombstone=False)
    led = piece.leader(last["partition"])
    copies = piece.of("replicas", last)
    if not any(row["broker"] == led for row in copies):
        raise Unfit
    piece.rows("replicas").remove(piece.pick(row for row in copies if row["broker"] != led))
    return Trace("latest_value_lost", "not on a follower", last["offset"])


def lose_far_out(piece: Piece) -> Trace:
    """The last value of a key, 40,000,000 offsets behind the first ones."""
    *_, last = _last_of_a_key(piece, tombstone=False, far=True)
    piece.lose(last)
    return Trace("latest_value_lost", "", last["offset"])


def bring_back_a_key(piece: Piece) -> Trace:
    """The tombstone is gone, an older value is not."""
    *older, last = _last_of_a_key(piece, tombstone=True)
    left = [row for row in older if not row["tombstone"] and piece.of("replicas", row)]
    led = piece.leader(last["partition"])
    if not left or not any(row["broker"] == led for row in piece.of("replicas", left[-1])):
        raise Unfit
    if left[-1] is not older[-1]:
        raise Unfit
    piece.lose(last)
    return Trace("resurrected_key", "in", left[-1]["offset"])


def drop_a_tombstone(piece: Piece) -> Trace:
    rows = _last_of_a_key(piece, tombstone=True)
    for row in rows:
        piece.lose(row)
    return Trace("tombstone_too_early", "absent", rows[-1]["offset"])


def clean_the_active_segment(piece: Piece) -> Trace:
    bases = {row["partition"]: row["active_base"] for row in piece.rows("logs")}
    victim = piece.victim(lambda row: int(row["offset"]) >= bases[row["partition"]])
    piece.lose(victim)
    return Trace("compacted_too_early", "active segment", victim["offset"])


def renumber(piece: Piece) -> Trace:
    victim = piece.victim()
    taken = {row["offset"] for row in piece.rows("replicas")}
    free = victim["offset"] + 1
    while free in taken:
        free += 1
    for table in ("reads", "replicas"):
        for row in piece.of(table, victim):
            row["offset"] = free
    return Trace("offset_renumbered", "renumbered", victim["offset"])
