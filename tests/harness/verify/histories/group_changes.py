"""Random changes of the evidence of groups and transactions."""

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
    """The leader of the group journals its assignment; one member has another's partition."""
    for row in [row for row in piece.rows("assignments") if row["event"] == "assigned"]:
        piece.rows("assignments").append(row | {"event": "given"})
    if piece.random.random() < 0.8:
        given = piece.pick(row for row in piece.rows("assignments") if row["event"] == "given")
        given["member_id"] = "another"


def assign_again(piece: Piece) -> None:
    """A member is assigned something later, in a generation near its own."""
    row = _assigned(piece)
    column = "member_epoch" if row["generation"] is None else "generation"
    generation = row[column] + piece.random.choice((-1, 0, 1))
    piece.rows("assignments").append(row | {column: generation, "at_ns": row["at_ns"] + 20 * S})


def use_epochs(piece: Piece) -> None:
    """Members have epochs of their own, instead of generations."""
    for table in ("assignments", "commits"):
        for row in piece.rows(table):
            if row["generation"] is not None:
                row |= {"member_epoch": row["generation"], "generation": None}


def make_static(piece: Piece) -> None:
    """Members are static; sometimes they are sessions of one instance."""
    same = piece.random.random() < 0.7
    for row in _members(piece):
        row["instance"] = "i" if same else f"i-{row['client']}"


def replace_static(piece: Piece) -> None:
    """A later session replaces a static member, and the member commits after that."""
    row = _assigned(piece)
    for client in _members(piece):
        client["instance"] = f"i-{client['client']}"
        if client["client"] == row["client"]:
            piece.rows("clients").append(client | {"session": 1})
    own = [
        assignment
        for assignment in piece.rows("assignments")
        if assignment["client"] == row["client"]
    ]
    last_ns = max(row["at_ns"] for row in own)
    piece.rows("assignments").append(row | {"session": 1, "at_ns": last_ns + S})
    commit = piece.pick(
        commit_row for commit_row in piece.rows("commits") if commit_row["client"] == row["client"]
    )
    commit["invoke_ns"] = last_ns + piece.random.choice((-1, 2)) * S


def keep_member(piece: Piece) -> None:
    """A member rejoins; meanwhile a commit without a generation arrives."""
    row, commit = _assigned(piece), piece.pick(piece.rows("commits"))
    piece.rows("assignments").append(row | {"event": "kept", "at_ns": row["at_ns"] + 10 * S})
    at_ns = row["at_ns"] + piece.random.choice((-5, 5)) * S
    commit |= {"generation": -1, "outcome": "ok", "invoke_ns": at_ns, "complete_ns": at_ns + 1}


def seek_past(piece: Piece) -> None:
    """A member seeks past the records between two positions."""
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
    """No member of the group received a record."""
    read = piece.pick(row for row in piece.rows("reads") if "-g" in row["client"])
    piece.drop("reads", lambda row: row["value_id"] == read["value_id"] and "-g" in row["client"])


def commit_beyond(piece: Piece) -> None:
    """A group commits beyond the records that its members read, or beyond the end."""
    commit = piece.pick(row for row in piece.rows("commits") if row["outcome"] == "ok")
    logs = [row for row in piece.rows("logs") if row["partition"] == commit["partition"]]
    commit["offset"] = max(row["log_end"] for row in logs) + piece.random.randint(-3, 3)


def serve_deleted(piece: Piece) -> None:
    """A leader serves a fetch from before its log's start."""
    answer = piece.pick(piece.rows("offset_answers"))
    served = {"query": "before:5", "offset": 4, "error": None, "timestamp_ms": None}
    piece.rows("offset_answers").append(answer | served)


def delete_from_compacted(piece: Piece) -> None:
    """A replica deletes the beginning of its log, as retention does."""
    log = piece.pick(piece.rows("logs"))
    log["log_start"] = piece.random.randint(0, 20)
    piece.drop(
        "replicas",
        lambda row: (
            all(row[name] == log[name] for name in ("broker", "partition"))
            and row["offset"] < log["log_start"]
        ),
    )


def clean_active(piece: Piece) -> None:
    """A record of the last segment is missing from one log, or from all."""
    record = piece.pick(piece.rows("replicas"))
    brokers = piece.random.choice(((1,), (2, 3), (1, 2, 3)))
    piece.drop(
        "replicas",
        lambda row: (
            row["offset"] == record["offset"]
            and row["partition"] == record["partition"]
            and row["broker"] in brokers
        ),
    )


def _txn(piece: Piece) -> Row:
    return piece.pick(row for row in piece.rows("txns") if row.get("end_ns"))


def serve_aborted(piece: Piece) -> None:
    """A reader of committed records received an aborted record that some logs do not have, and
    whose marker some do not have, either."""
    ends = {(row["client"], row["session"], row["txn"]): row for row in piece.rows("txns")}
    send = piece.pick(
        row for row in piece.rows("sends")
        if (end := ends.get((row["client"], row["session"], row["txn"]))) is not None
        and end.get("commit_invoke_ns") is None
    )  # fmt: skip
    reader = piece.pick(
        row for row in piece.rows("clients")
        if row.get("isolation") == "read_committed" and "-final-" not in row["client"]
    )  # fmt: skip
    cleaned = piece.random.choice(((), (1,), (1, 2), (2, 3), (1, 2, 3)))
    unmarked = piece.random.choice(((), (1, 2, 3)))
    piece.drop(
        "replicas",
        lambda row: (
            (row["value_id"] == send["value_id"] and row["broker"] in cleaned)
            or (
                row["control"] is not None
                and row["broker"] in unmarked
                and row["partition"] == send["partition_intended"]
            )
        ),
    )
    known = {name: send[name] for name in ("topic_id", "topic", "key", "value_id", "timestamp_ms")}
    piece.rows("reads").append(
        known | {"client": reader["client"], "session": reader["session"], "pass": 77, "poll": 7777}
        | {"position_in_poll": 0, "read_ns": send["invoke_ns"] + 5, "intact": True}
        | {"partition": send["partition_intended"], "offset": send["offset"] or 7}
        | {"leader_epoch": 0, "generation": None}
    )  # fmt: skip


_UNENDED = {"outcome": "unknown", "commit_invoke_ns": None}


def take_over(piece: Piece) -> None:
    """Another producer is initialised with a transactional id, before or amid a transaction."""
    txn = _txn(piece)
    txn |= {"init_invoke_ns": txn["begin_ns"] - 2 * MS, "init_ns": txn["begin_ns"] - MS}
    at_ns = txn["begin_ns"] + piece.random.choice((-10, 1, 40, 10_000)) * MS
    epoch = txn["epoch"] + piece.random.choice((0, 1))
    other = {"client": "another", "txn": 0, "epoch": epoch, "begin_ns": at_ns + MS}
    inits = {"init_invoke_ns": at_ns - MS // 2, "init_ns": at_ns}
    piece.rows("txns").append(
        txn | other | inits | {"outcome": "unknown", "commit_invoke_ns": None}
    )


def commit_late(piece: Piece) -> None:
    """The commit of a transaction was requested seconds later."""
    txn = piece.pick(row for row in piece.rows("txns") if row.get("commit_invoke_ns"))
    txn["commit_invoke_ns"] += piece.random.choice((MS, S, 90 * S))


def end_otherwise(piece: Piece) -> None:
    """A transaction had another outcome."""
    txn = _txn(piece)
    txn["outcome"] = piece.random.choice(("committed", "aborted", "unknown"))
    txn["commit_invoke_ns"] = piece.random.choice((None, txn["end_ns"] - MS))


def answer_stable_end(piece: Piece) -> None:
    """Readers of committed records receive an end amid a transaction."""
    txn = _txn(piece)
    answer = piece.pick(piece.rows("offset_answers"))
    at_ns = piece.random.randint(txn["begin_ns"], txn["end_ns"])
    log_end = max(row["log_end"] for row in piece.rows("logs"))
    piece.rows("offset_answers").append(
        answer | {"query": "stable", "error": None, "invoke_ns": at_ns, "complete_ns": at_ns + 1}
        | {"offset": piece.random.randint(0, log_end), "timestamp_ms": None}
    )  # fmt: skip


def hide_transaction(piece: Piece) -> None:
    """One final pass of readers of committed records delivers nothing of a transaction."""
    committed = {send["value_id"]: send["txn"] for send in piece.committed()}
    read = piece.pick(
        row for row in piece.rows("reads")
        if "-final-read_committed" in row["client"] and row["value_id"] in committed
    )  # fmt: skip
    piece.drop(
        "reads",
        lambda row: (
            (row["client"], row["pass"]) == (read["client"], read["pass"])
            and committed.get(row["value_id"]) == committed[read["value_id"]]
        ),
    )


def hide_from_committed(piece: Piece) -> None:
    """A record is in no final pass of readers of committed records, or lacks in one."""
    read = piece.pick(
        row for row in piece.rows("reads") if "-final-read_committed" in row["client"]
    )
    some = piece.random.random() < 0.5
    piece.drop(
        "reads",
        lambda row: (
            row["client"] == read["client"]
            and row["value_id"] == read["value_id"]
            and (some or row["pass"] == read["pass"])
        ),
    )


def _outcome(table: str) -> Change:
    def change(piece: Piece) -> None:
        row = piece.pick(piece.rows(table))
        row["outcome"] = piece.random.choice(("ok", "info", "fail"))
        row["complete_ns"] = row["invoke_ns"] + MS

    return change


GROUP_CHANGES: dict[str, Change] = {
    **{change.__name__: change for change in (
        assign_to_mate, assign_again, commit_as_mate, lead_group, use_epochs, make_static,
        replace_static,
        keep_member, seek_past, process_nothing, commit_beyond, serve_deleted,
        delete_from_compacted, clean_active, take_over, commit_late, end_otherwise,
        answer_stable_end, hide_from_committed, hide_transaction, serve_aborted,
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
