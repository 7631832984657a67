"""Random changes of what groups and transactions did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.harness.verify.histories.damage import Piece
from tests.harness.verify.histories.log import MS, Row, S

Change = Callable[[Piece], object]


def _set(table: str, **columns: Any) -> Change:
    """Set columns of one row."""

    def change(piece: Piece) -> None:
        row = piece.pick(piece.rows(table))
        row |= columns

    return change


def _shift(table: str, column: str) -> Change:
    """Move a time by up to ten seconds."""

    def change(piece: Piece) -> None:
        row = piece.pick(row for row in piece.rows(table) if row.get(column) is not None)
        row[column] += piece.random.randint(-10_000, 10_000) * MS + 1

    return change


def _assigned(piece: Piece) -> Row:
    return piece.pick(row for row in piece.rows("assignments") if row["event"] == "assigned")


def _members(piece: Piece) -> list[Row]:
    return [row for row in piece.rows("clients") if row["kind"] == "group"]


def assign_to_mate(piece: Piece) -> None:
    """A member has the assignment of another one."""
    row, mate = _assigned(piece), piece.pick(_members(piece))
    row |= {"client": mate["client"], "member_id": f"{mate['client']}-id"}


def commit_as_mate(piece: Piece) -> None:
    """A commit was another member's."""
    piece.pick(piece.rows("commits"))["client"] = piece.pick(_members(piece))["client"]


def lead_group(piece: Piece) -> None:
    """The leader of the group journals what it gave; one member has another's partition."""
    for row in [row for row in piece.rows("assignments") if row["event"] == "assigned"]:
        piece.rows("assignments").append(row | {"event": "given"})
    if piece.random.random() < 0.8:
        given = piece.pick(row for row in piece.rows("assignments") if row["event"] == "given")
        given["member_id"] = "another"


def assign_again(piece: Piece) -> None:
    """A member is assigned something later, in a generation near its own."""
    row = _assigned(piece)
    generation = row["generation"] + piece.random.choice((-1, 0, 1))
    piece.rows("assignments").append(
        row | {"generation": generation, "at_ns": row["at_ns"] + 20 * S}
    )


def make_static(piece: Piece) -> None:
    """Members are static; sometimes they are sessions of one instance."""
    same = piece.random.random() < 0.7
    for row in _members(piece):
        row["instance"] = "i" if same else f"i-{row['client']}"


def replace_static(piece: Piece) -> None:
    """A static member's place is taken by a later session, and it commits after that."""
    row = _assigned(piece)
    for client in _members(piece):
        client["instance"] = f"i-{client['client']}"
        if client["client"] == row["client"]:
            piece.rows("clients").append(client | {"session": 1})
    own = [one for one in piece.rows("assignments") if one["client"] == row["client"]]
    last_ns = max(one["at_ns"] for one in own)
    piece.rows("assignments").append(row | {"session": 1, "at_ns": last_ns + S})
    commit = piece.pick(one for one in piece.rows("commits") if one["client"] == row["client"])
    commit["invoke_ns"] = last_ns + piece.random.choice((-1, 2)) * S


def keep_member(piece: Piece) -> None:
    """A member asks for its assignment again; a commit without a generation comes meanwhile."""
    row, commit = _assigned(piece), piece.pick(piece.rows("commits"))
    piece.rows("assignments").append(row | {"event": "kept", "at_ns": row["at_ns"] + 10 * S})
    at_ns = row["at_ns"] + piece.random.choice((-5, 5)) * S
    commit |= {"generation": -1, "outcome": "ok", "invoke_ns": at_ns, "complete_ns": at_ns + 1}


def seek_past(piece: Piece) -> None:
    """A member seeks past what lies between two positions."""
    row = piece.pick(piece.rows("assignments"))
    low = piece.random.randint(0, 9)
    who = {
        name: row[name] for name in ("run", "topic_id", "topic", "partition", "client", "session")
    }
    poll = {"outcome": "ok", "invoke_ns": row["at_ns"], "complete_ns": row["at_ns"] + MS}
    before, sought = {"poll": 900, "position_before": 0}, {"poll": 901, "event": "seek"}
    piece.rows("polls").append(who | poll | before | {"position_after": low, "event": None})
    high = low + piece.random.randint(1, 9)
    piece.rows("polls").append(
        who | poll | sought | {"position_before": high, "position_after": high}
    )


def process_nothing(piece: Piece) -> None:
    """A record was given to no member of the group."""
    read = piece.pick(row for row in piece.rows("reads") if "-g" in row["client"])
    piece.drop("reads", lambda row: row["value_id"] == read["value_id"] and "-g" in row["client"])


def commit_beyond(piece: Piece) -> None:
    """A group commits beyond what its members read, or beyond the end."""
    commit = piece.pick(row for row in piece.rows("commits") if row["outcome"] == "ok")
    logs = [row for row in piece.rows("logs") if row["partition"] == commit["partition"]]
    commit["offset"] = max(row["log_end"] for row in logs) + piece.random.randint(-3, 3)


def _outcome(table: str) -> Change:
    def change(piece: Piece) -> None:
        row = piece.pick(piece.rows(table))
        row["outcome"] = piece.random.choice(("ok", "info", "fail"))
        row["complete_ns"] = row["invoke_ns"] + MS

    return change


GROUP_CHANGES: dict[str, Change] = {
    **{one.__name__: one for one in (
        assign_to_mate, assign_again, commit_as_mate, lead_group, make_static, replace_static,
        keep_member, seek_past, process_nothing, commit_beyond,
    )},
    "commits.outcome": _outcome("commits"),
    "commit_reads.outcome": _outcome("commit_reads"),
    "commit_reads.intact": _set("commit_reads", intact=False),
    "commit_reads.offset none": _set("commit_reads", offset=None),
    "assignments forgotten": _set("assignments", event="forgotten"),
    "assignments kept": _set("assignments", event="kept"),
    "assignments without generation": _set("assignments", generation=-1),
    **{f"{table}.{column} shifted": _shift(table, column) for table, column in (
        ("assignments", "at_ns"), ("commits", "invoke_ns"), ("commits", "complete_ns"),
        ("commit_reads", "invoke_ns"),
    )},
}  # fmt: skip
"""Name to change, for topics of every kind."""
