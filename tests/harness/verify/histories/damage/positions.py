"""Damage to the order of consumers' reads: skipped, repeated, out of order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.harness.verify.histories.damage.piece import Piece, Unfit
from tests.harness.verify.histories.log import Row
from urteil.harness.verify.damage import Trace


def reads_by_pass(piece: Piece) -> dict[tuple[Any, ...], list[Row]]:
    """Reads of live readers by client, session and pass, in order."""
    passes: dict[tuple[Any, ...], list[Row]] = {}
    for row in piece.rows("reads"):
        if "-c" in row["client"]:
            passes.setdefault((row["client"], row["session"], row["pass"]), []).append(row)
    return passes


def skip_first_of_a_new_process(piece: Piece) -> Trace:
    """A new process begins at a position and does not receive the record there."""
    begun = {
        (row["client"], row["session"], row["pass"]): row["from_offset"]
        for row in piece.rows("passes")
    }
    read = piece.pick(
        reads[0]
        for key, reads in reads_by_pass(piece).items()
        if key[1] > 0 and key[2] == 0 and len(reads) > 1 and reads[0]["offset"] == begun[key]
    )
    piece.rows("reads").remove(read)
    return Trace("poll_skip", "gap", read["offset"])


def skip_after_a_seek(piece: Piece) -> Trace:
    """Within a poll after a seek: the seek is before the poll, and excuses nothing."""
    seeks = [row for row in piece.rows("polls") if row["event"] == "seek"]
    for reads in reads_by_pass(piece).values():
        for number, row in enumerate(reads[2:-1], 2):
            sought = any(
                seek["client"] == row["client"] and seek["session"] == row["session"]
                and seek["poll"] < reads[number - 1]["poll"] for seek in seeks
            )  # fmt: skip
            before = reads[number - 1]
            follows = before["offset"] + 1 == row["offset"] and before["poll"] == row["poll"]
            if sought and follows:
                piece.rows("reads").remove(row)
                return Trace("poll_skip", "gap", row["offset"])
    raise Unfit


def skip_a_committed_record(piece: Piece) -> Trace:
    """In the middle of a poll of a live reader."""
    committed = {row["value_id"] for row in piece.committed()}
    read = piece.pick(
        row
        for reads in reads_by_pass(piece).values()
        for before, row, after in zip(reads, reads[1:], reads[2:], strict=False)
        if before["poll"] == row["poll"] == after["poll"] and row["value_id"] in committed
    )
    piece.rows("reads").remove(read)
    return Trace("poll_skip", "gap", read["offset"])


def go_back_in_a_poll(piece: Piece) -> Trace:
    """Two records of one poll in the wrong order."""
    pairs = [
        (left, right)
        for reads in reads_by_pass(piece).values()
        for left, right in pairwise(reads)
        if left["poll"] == right["poll"]
    ]
    if not pairs:
        raise Unfit
    left, right = piece.random.choice(pairs)
    places = left["position_in_poll"], right["position_in_poll"]
    right["position_in_poll"], left["position_in_poll"] = places
    return Trace("nonmonotonic_poll", "reads", left["offset"])


def turn_a_position_back(piece: Piece) -> Trace:
    """A poll begins before the position that the poll before it reached."""
    polls = [row for row in piece.rows("polls") if row["event"] is None and "-c" in row["client"]]
    for first, second in pairwise(polls):
        same = all(first[name] == second[name] for name in ("client", "session", "partition"))
        follows = first["poll"] < second["poll"] and not _has_event_between(piece, first, second)
        if same and follows and first["position_after"] == second["position_before"] > 0:
            second["position_before"] -= 1
            return Trace("nonmonotonic_poll", "position", second["position_before"])
    raise Unfit


def _has_event_between(piece: Piece, first: Row, second: Row) -> bool:
    return any(
        row["event"] and row["client"] == first["client"] and row["session"] == first["session"]
        and first["poll"] <= row["poll"] <= second["poll"]
        for row in piece.rows("polls")
    )  # fmt: skip


def skip_after_a_rebalance(piece: Piece) -> Trace:
    """A member does not receive the record at its fetched position."""
    for position in piece.rows("commit_reads"):
        if position.get("generation") is None or position["offset"] is None:
            continue
        reads = [
            row
            for row in piece.rows("reads")
            if row["client"] == position["client"] and row["partition"] == position["partition"]
            if row.get("generation") == position["generation"]
        ]
        if len(reads) > 1 and reads[0]["offset"] == position["offset"]:
            piece.rows("reads").remove(reads[0])
            return Trace("poll_skip", "after a rebalance", reads[0]["offset"])
    raise Unfit
