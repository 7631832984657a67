"""Random changes of single values and rows. Other than a damage, a change may break any promise.
The query of a guarantee and its reference check must agree on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.harness.verify.histories.damage import OF_KIND, Piece, Unfit
from tests.harness.verify.histories.group_changes import GROUP_CHANGES
from tests.harness.verify.histories.log import Row

Change = Callable[[Piece], object]


def _other(piece: Piece, table: str, column: str, row: Row) -> Any:
    """The value of another row."""
    return piece.pick(
        other[column] for other in piece.rows(table)
        if other[column] not in (None, row[column]) and other["partition"] == row["partition"]
    )  # fmt: skip


def _near(piece: Piece, table: str, column: str, row: Row) -> Any:
    return max(0, row[column] + piece.random.choice((-2, -1, 1, 2)))


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_: value


def _shifted_epochs(piece: Piece, table: str, column: str, row: Row) -> str:
    """The last epoch begins an offset later."""
    epochs = json.loads(row[column])
    epoch = max(epochs, key=int)
    return json.dumps(epochs | {epoch: epochs[epoch] + 1})


def _forgotten_epoch(piece: Piece, table: str, column: str, row: Row) -> str:
    epochs = json.loads(row[column])
    del epochs[piece.pick(epochs)]
    return json.dumps(epochs)


def _word(*words: Any) -> Callable[..., Any]:
    """Another one of these."""
    return lambda piece, _, column, row: piece.pick(word for word in words if word != row[column])


def alter(table: str, column: str, value: Callable[..., Any], *, copies: bool, piece: Piece) -> str:
    """Change a column of one row; with `copies`, of all replicas' rows of that record.

    Markers stay where they are: two at one offset are one row of the shared tables.
    """
    row = piece.pick(
        row for row in piece.rows(table)
        if row.get(column) is not None and (column != "offset" or not row.get("control"))
    )  # fmt: skip
    new, mark = value(piece, table, column, row), (row["partition"], row.get("offset"))
    for copy in piece.rows(table) if copies else [row]:
        if (copy["partition"], copy.get("offset")) == mark:
            copy[column] = new
    return f"{table}.{column}"


def drop_row(table: str, piece: Piece) -> None:
    """Remove one row."""
    piece.rows(table).remove(piece.pick(piece.rows(table)))


def drop_record(*tables: str, piece: Piece) -> None:
    """Remove all rows of a value."""
    value = piece.pick(row["value_id"] for row in piece.rows(tables[0]) if row["value_id"])
    for table in tables:
        piece.drop(table, lambda row: row["value_id"] == value)


def double_read(piece: Piece) -> None:
    """A record is delivered once more, at its place or at another."""
    row = piece.pick(piece.rows("reads"))
    offset = piece.random.choice((row["offset"], row["offset"] + 1))
    again = {"offset": offset, "position_in_poll": row["position_in_poll"] + 1_000}
    piece.rows("reads").append(row | again)


def append_again(piece: Piece) -> None:
    """A record is in all logs once more, behind their ends."""
    copy = piece.pick(row for row in piece.rows("replicas") if row["value_id"])
    logs = [row for row in piece.rows("logs") if row["partition"] == copy["partition"]]
    end = max(row["log_end"] for row in logs)
    for row in list(piece.rows("replicas")):
        if (row["partition"], row["value_id"]) == (copy["partition"], copy["value_id"]):
            piece.rows("replicas").append(row | {"offset": end, "batch_base": end})
    for row in logs:
        row |= {"log_end": end + 1, "high_watermark": end + 1}


def move_record(piece: Piece) -> None:
    """A record is moved to another, unused offset in all evidence."""
    copy = piece.pick(row for row in piece.rows("replicas") if row["value_id"])
    end = max(row["log_end"] for row in piece.rows("logs"))
    for table in ("reads", "replicas"):
        for row in piece.of(table, copy):
            row["offset"] = end


def move_to_other_partition(piece: Piece) -> None:
    """A record is in the other partition, at the same offset."""
    copy = piece.pick(row for row in piece.rows("replicas") if row["value_id"])
    for table in ("reads", "replicas"):
        for row in piece.of(table, copy):
            row["partition"] = 1 - row["partition"]


def swap_records(piece: Piece) -> None:
    """Two records of a partition have each other's offset, for all."""
    first = piece.pick(row for row in piece.rows("replicas") if row["value_id"])
    other = piece.pick(
        row for row in piece.rows("replicas")
        if row["value_id"] not in (None, first["value_id"])
        and row["partition"] == first["partition"]
    )  # fmt: skip
    offsets = {first["value_id"]: other["offset"], other["value_id"]: first["offset"]}
    for table in ("sends", "reads", "replicas"):
        for row in piece.rows(table):
            if row["value_id"] in offsets and row["offset"] is not None:
                row["offset"] = offsets[row["value_id"]]


def acknowledge(piece: Piece) -> None:
    """A send of unknown outcome is acknowledged with the next offset of another."""
    row = piece.pick(row for row in piece.rows("sends") if row["outcome"] == "info")
    offset = _other(piece, "sends", "offset", row) + 1
    done_ns = row["invoke_ns"] + 1
    row |= {"outcome": "ok", "offset": offset, "partition": row["partition_intended"]}
    row |= {"complete_ns": done_ns, "error": None}


def withdraw(outcome: str, piece: Piece) -> None:
    """An acknowledged send has another outcome."""
    row = piece.pick(row for row in piece.rows("sends") if row["outcome"] == "ok")
    row |= {"outcome": outcome, "offset": None, "error": "made up"}


def read_as_producer(piece: Piece) -> None:
    """A producer read a record before one of its sends."""
    read, send = piece.pick(piece.rows("reads")), piece.pick(piece.rows("sends"))
    read |= {"client": send["client"], "session": 0, "read_ns": send["invoke_ns"] - 1}


def lose_what_a_producer_read(piece: Piece) -> None:
    """A record is on no disk that a producer had read before one of its sends."""
    read, send = piece.pick(piece.rows("reads")), piece.victim()
    read |= {"client": send["client"], "session": 0, "read_ns": send["invoke_ns"] - 1}
    piece.drop("replicas", lambda row: row["value_id"] == read["value_id"])


def fail_unread(piece: Piece) -> None:
    """A record that is on all disks was refused, and no reader received it."""
    send = piece.victim()
    piece.lose(send, "reads")
    send |= {"outcome": "fail", "offset": None, "error": "made up"}


def acknowledge_twice_unread(piece: Piece) -> None:
    """Two sends have one offset, and no reader received a record there."""
    send, other = piece.victim(), piece.victim()
    if send["partition"] != other["partition"] or send["offset"] == other["offset"]:
        raise Unfit
    piece.drop("reads", lambda row: row["offset"] == send["offset"])
    other["offset"] = send["offset"]


def end_below_read(piece: Piece) -> None:
    """No send has acks=all, and a returned end is not beyond the records read before."""
    answer = piece.pick(row for row in piece.rows("offset_answers") if row["query"] == "latest")
    known = [
        row["offset"] for row in piece.rows("reads")
        if row["partition"] == answer["partition"] and row["read_ns"] < answer["invoke_ns"]
    ]  # fmt: skip
    for send in piece.rows("sends"):
        send["acks"] = 1
    answer["offset"] = piece.random.choice((max(known, default=0), max(known, default=0) + 1))


_ONE: dict[str, dict[str, tuple[Callable[..., Any], ...]]] = {
    "sends": {
        "offset": (_near, _other),
        "acks": (_word(-1, 1),),
        "attempts": (_word(1, 2),),
        "key": (_other, _constant(None), _constant("")),
        "timestamp_ms": (_near,),
        "invoke_ns": (_other,),
        "complete_ns": (_other,),
        "node": (_word(1, 2, 3),),
        "partition": (_word(0, 1),),
    },
    "reads": {
        "offset": (_near, _other),
        "value_id": (_other,),
        "key": (_other, _constant(None)),
        "timestamp_ms": (_near,),
        "intact": (_constant(False),),
        "read_ns": (_other,),
        "leader_epoch": (_near,),
    },
    "replicas": {
        "offset": (_near, _other),
        "value_id": (_other,),
        "key": (_other, _constant(None)),
        "timestamp_ms": (_near,),
        "intact": (_constant(False),),
        "leader_epoch": (_near,),
        "producer_id": (_other, _constant(None), _constant(-1)),
        "producer_epoch": (_near,),
        "sequence": (_near, _other),
        "control": (_word("commit", "abort"),),
        "batch_crc": (_near,),
        "batch_base": (_near,),
    },
    "states": {
        "leader": (_word(1, 2, 3),),
        "leader_epoch": (_near,),
        "controller_epoch": (_near,),
        "version": (_near,),
        "isr": (_word("[]", "[1]", "[2]", "[1, 2]", "[2, 3]", "[1, 2, 3]"), _constant("[1, 4]")),
    },
    "logs": {
        "log_start": (_near,),
        "log_end": (_near,),
        "high_watermark": (_near,),
        "recovery_point": (_near,),
        "epochs": (_other, _constant("{}"), _shifted_epochs, _forgotten_epoch),
    },
    "offset_answers": {
        "offset": (_near, _other),
        "leader_epoch": (_near,),
        "node": (_word(1, 2, 3),),
    },
}
"""Table to its columns, with the ways in which they are changed."""

_GROUPS: dict[str, dict[str, tuple[Callable[..., Any], ...]]] = {
    "commits": {"offset": (_near, _other), "generation": (_near,), "member_epoch": (_near,)},
    "commit_reads": {"offset": (_near, _other)},
    "assignments": {"generation": (_near,), "member_epoch": (_near,)},
    "polls": {"position_before": (_near,)},
}


def _alterations(tables: dict[str, dict[str, tuple[Callable[..., Any], ...]]]) -> dict[str, Change]:
    appliers = {
        f"{table}.{column} {n}{' on all' if copies else ''}": partial(
            alter, table, column, value, copies=copies
        )
        for table, columns in tables.items()
        for column, values in columns.items()
        for n, value in enumerate(values)
        for copies in ((False, True) if table == "replicas" else (False,))
    }
    return {
        name: (lambda piece, apply=apply: apply(piece=piece)) for name, apply in appliers.items()
    }


OF_GROUPS: dict[str, Change] = {**_alterations(_GROUPS), **GROUP_CHANGES}
"""The changes of groups and transactions."""

CHANGES: dict[str, Change] = {
    **_alterations(_ONE),
    **{f"drop of {table}": partial(lambda table, piece: drop_row(table, piece), table)
       for table in ("reads", "replicas", "passes", "states", "offset_answers")},
    "record nowhere": lambda piece: drop_record("replicas", "reads", piece=piece),
    "record on no disk": lambda piece: drop_record("replicas", piece=piece),
    "record unread": lambda piece: drop_record("reads", piece=piece),
    "send forgotten": lambda piece: drop_record("sends", piece=piece),
    "send failed": partial(withdraw, "fail"),
    "send unknown": partial(withdraw, "info"),
    **{change.__name__: change for change in (double_read, append_again, move_record, swap_records,
                                     move_to_other_partition, acknowledge, read_as_producer,
                                     lose_what_a_producer_read, fail_unread,
                                     acknowledge_twice_unread, end_below_read)},
    **OF_GROUPS,
}  # fmt: skip
"""Name to change, for topics of every kind."""


def apply(name: str, piece: Piece) -> None:
    """Change a topic; nothing where it has nothing to be changed so."""
    damages: dict[str, Change] = {change.__name__: change for change in OF_KIND["plain"]}
    damages |= {change.__name__: change for some in OF_KIND.values() for change in some}
    try:
        ({**damages, **CHANGES})[name](piece)
    except Unfit:
        return
