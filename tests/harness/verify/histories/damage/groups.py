"""Damage to the partitions that a consumer group owns, and to its commits."""

from __future__ import annotations

from tests.harness.verify.histories.damage.piece import Piece
from tests.harness.verify.histories.history import FAR
from tests.harness.verify.histories.log import END_NS, MS, Row, S
from urteil.harness.verify.damage import Trace


def commit_past_a_record(piece: Piece) -> Trace:
    """No member of the group ever processed it, in any process or generation."""
    victim = piece.pick(_passed(piece, piece.sound()))
    return _unprocessed(piece, victim)


def commit_past_a_committed_record(piece: Piece) -> Trace:
    victim = piece.pick(_passed(piece, piece.committed()))
    return _unprocessed(piece, victim)


def _passed(piece: Piece, sends: list[Row]) -> list[Row]:
    """The records of `sends` that the commits of a group passed."""
    tops: dict[int, int] = {}
    for row in piece.rows("commits"):
        if row["outcome"] == "ok":
            tops[row["partition"]] = max(tops.get(row["partition"], 0), row["offset"])
    return [row for row in sends if int(row["offset"]) < tops.get(row["partition"], 0)]


def _unprocessed(piece: Piece, victim: Row) -> Trace:
    piece.drop("reads", lambda r: r["value_id"] == victim["value_id"] and "-g" in r["client"])
    return Trace("commit_beyond_processed", "not processed", victim["offset"])


def own_twice(piece: Piece) -> Trace:
    assignment = piece.pick(r for r in piece.rows("assignments") if r["event"] == "assigned")
    other = next(
        row["client"]
        for row in piece.rows("clients")
        if row["kind"] == "group" and row["client"] != assignment["client"]
    )
    piece.rows("assignments").append(assignment | {"client": other, "member_id": "another"})
    return Trace("two_owners", "one generation", None)


def own_at_once(piece: Piece) -> Trace:
    """Another member is assigned a partition, and both commit in it, within 40 ns."""
    assignment = piece.pick(r for r in piece.rows("assignments") if r["event"] == "assigned")
    heir = next(
        row
        for row in piece.rows("clients")
        if row["kind"] == "group" and row["client"] != assignment["client"]
    )
    commit = piece.pick(piece.rows("commits"))
    assignment |= {"generation": None, "member_epoch": 5, "member_id": "owner"}
    other = assignment | {"client": heir["client"], "session": heir["session"], "member_id": "heir"}
    other |= {"member_epoch": 6, "at_ns": assignment["at_ns"] + 10}
    piece.rows("assignments").append(other)
    for owner, after_ns in ((other, 20), (assignment, 40)):
        columns = ("topic_id", "topic", "partition", "group", "client", "session", "member_id")
        own = {name: owner[name] for name in columns} | {"member_epoch": owner["member_epoch"]}
        at_ns = assignment["at_ns"] + after_ns
        times = {"invoke_ns": at_ns, "complete_ns": at_ns + 1, "outcome": "ok", "error": None}
        piece.rows("commits").append(commit | own | times | {"generation": None, "offset": 0})
    return Trace("overlapping_owners", "at once", None)


def commit_in_an_old_epoch(piece: Piece) -> Trace:
    """Before a member's commit it had an epoch, and the next one after that."""
    commit = piece.pick(r for r in piece.rows("commits") if r["outcome"] == "ok")
    commit |= {"generation": None, "member_epoch": 5, "member_id": "stale"}
    kept = ("run", "topic_id", "topic", "partition", "group", "client", "session", "member_id")
    assignment = {name: commit.get(name) for name in kept} | {"event": "assigned"}
    for epoch in (5, 6):
        at_ns = commit["invoke_ns"] - 20 + epoch
        piece.rows("assignments").append(assignment | {"member_epoch": epoch, "at_ns": at_ns})
    return Trace("zombie_commit", "stale epoch", commit["offset"])


def accept_a_late_commit(piece: Piece) -> Trace:
    refused = piece.pick(r for r in piece.rows("commits") if r["outcome"] == "fail")
    refused |= {"outcome": "ok", "complete_ns": refused["invoke_ns"] + MS, "error": None}
    return Trace("zombie_commit", "accepted", refused["offset"])


def forget_a_commit(piece: Piece) -> Trace:
    commit = piece.pick(r for r in piece.rows("commits") if r["outcome"] == "ok" and r["offset"])
    asked = {"client": f"{piece.topic}-o", "generation": None, "member_id": None}
    times = {"invoke_ns": END_NS + S, "complete_ns": END_NS + 2 * S, "error": None}
    kept = {k: v for k, v in commit.items() if k not in ("processed_to", "txn")}
    piece.rows("commit_reads").append(kept | asked | times | {"offset": None})
    return Trace("commit_went_back", "went back", None)


def invent_a_commit(piece: Piece) -> Trace:
    commit = piece.pick(r for r in piece.rows("commits") if r["outcome"] == "ok")
    asked = {"client": f"{piece.topic}-o", "generation": None, "member_id": None}
    times = {"invoke_ns": END_NS + S, "complete_ns": END_NS + 2 * S, "error": None}
    kept = {k: v for k, v in commit.items() if k not in ("processed_to", "txn")}
    piece.rows("commit_reads").append(kept | asked | times | {"offset": FAR * 2})
    return Trace("commit_register", "register", FAR * 2)
