"""Damage to transactions, which are made up of the copy's plain records."""

from __future__ import annotations

from typing import Any

from urteil.harness.evidence.acts import INITIALISE
from urteil.harness.verify.damage.added_topics import COMPACTED
from urteil.harness.verify.damage.compaction_and_retention import EACH, clone
from urteil.harness.verify.damage.copy import Copy, S, damage, first
from urteil.harness.verify.damage.records import reads_amid_others
from urteil.harness.verify.evidence import Row

READER = "made up committed"
LIVE_READER = "made up live reader"
ABORTED = 7 * EACH
"""The record of the compacted topic that is aborted: the first one of a key."""
NEWEST_EPOCH = 1_000
FIRST = 1_000_000
"""Numbers of made-up transactions; those of a run's own clients are far below."""


@damage("hide a record of a committed transaction", "torn_txn", "missing")
def tear_transaction(copy: Copy) -> Row:
    """A committed transaction of which one record is not shown."""
    victim, other = _pair(copy)
    _txn(copy, [victim, other])
    _committed_pass(copy, victim)
    readers = {
        row["client"] for row in copy.rows("clients") if row.get("isolation") == "read_committed"
    }
    copy.drop(
        "reads",
        lambda row: row["client"] in readers and row["value_id"] == victim["value_id"],
    )
    return victim


@damage("show a record of an aborted transaction", "torn_txn", "visible")
def show_aborted(copy: Copy) -> Row:
    victim = copy.take()
    _txn(copy, [victim], outcome="aborted", commit_invoke_ns=None)
    _committed_pass(copy, victim)
    return victim


@damage("serve an aborted record that was cleaned later", "aborted_read", "aborted by its client")
def serve_aborted(copy: Copy) -> Row:
    """In a compacted topic a reader of committed records received an aborted record, which was
    cleaned afterwards."""
    victim = clone(copy, COMPACTED)[ABORTED]
    _txn(copy, [victim], outcome="aborted", commit_invoke_ns=None)
    read = first(copy.of("reads", victim))
    model = first(row for row in copy.rows("clients") if _session_of(row) == _session_of(read))
    for table in ("reads", "replicas"):
        copy.drop(table, lambda row: bool(row["value_id"] == victim["value_id"]))
    copy.rows("clients").append(model | {"client": LIVE_READER, "isolation": "read_committed"})
    copy.rows("reads").append(read | {"client": LIVE_READER})
    return victim


@damage("read a record before its commit", "precommitted_read", "record")
def read_before_commit(copy: Copy) -> Row:
    victim = copy.take()
    _committed_pass(copy, victim)
    last_ns = max(row["read_ns"] for row in copy.of("reads", victim))
    _txn(copy, [victim], commit_invoke_ns=last_ns + S, end_ns=last_ns + 2 * S)
    return victim


@damage("answer an end beyond an open transaction", "precommitted_read", "end")
def answer_end_beyond_transaction(copy: Copy) -> Row:
    """Readers of committed records receive an end beyond an open transaction."""
    victim = copy.take()
    at_ns = victim["complete_ns"]
    _txn(copy, [victim], commit_invoke_ns=at_ns + 2 * S, end_ns=at_ns + 3 * S)
    _answer(copy, victim, "stable", victim["offset"] + 1, at_ns + S)
    return victim


@damage("write with a fenced transactional id", "zombie_write", "record")
def write_as_zombie(copy: Copy) -> Row:
    victim = copy.take()
    at_ns = victim["invoke_ns"]
    own = _txn(copy, [victim], init_invoke_ns=at_ns - 4 * S, init_ns=at_ns - 3 * S)
    later = {"client": "made up", "init_invoke_ns": at_ns - 2 * S, "init_ns": at_ns - S}
    copy.rows("txns").append(own | later)
    return victim


@damage("leave an input of an output unconsumed", "offsets_not_atomic", "not consumed")
def forget_to_consume(copy: Copy) -> Row:
    """An output is there, and its input lies beyond where its group stands."""
    source, output = copy.take(), copy.take()
    _step(copy, source, output, source["offset"], "made up outputs")
    return source


@damage("consume an input without an output", "unprocessed", "missing")
def consume_without_output(copy: Copy) -> Row:
    """A group stands behind a record of which there is no output."""
    source, output, missing = copy.take(), copy.take(), copy.take()
    _step(copy, source, output, missing["offset"] + 1, "made up inputs")
    return missing


@damage("process an input twice", "processed_twice", "twice")
def process_twice(copy: Copy) -> Row:
    source, *outputs = copy.take(), copy.take(), copy.take()
    for output in outputs:
        output["source"] = source["value_id"]
        _txn(copy, [output])
    _committed_pass(copy, source)
    return source


@damage("copy two records of a key in reverse", "reordered_copy", "order")
def copy_in_reverse(copy: Copy) -> Row:
    """The copy of the later record lies before that of the earlier one."""
    earlier = copy.take()
    later = copy.take(lambda row: bool(row["key"] == earlier["key"]))
    for source in (later, earlier):
        output = copy.take()
        output["source"] = source["value_id"]
        _txn(copy, [output])
    return later


@damage("interleave the writes of two transactions", "g0", "g0")
def interleave_writes(copy: Copy) -> None:
    """One transaction wrote before and after another one."""
    before, after = _pair(copy)
    between = first(
        row
        for row in copy.rows("sends")
        if row["topic_id"] == before["topic_id"] and row["txn"] is None
        if before["offset"] < (row["offset"] or 0) < after["offset"]
    )
    _txn(copy, [before, after])
    _txn(copy, [between])


@damage("let two transactions read each other", "g1c", "g1c")
def read_each_other(copy: Copy) -> None:
    left, right = copy.take(), copy.take()
    _read(copy, _txn(copy, [left]), right)
    _read(copy, _txn(copy, [right]), left)


@damage("read half of a transaction", "g_single", "g_single")
def read_half(copy: Copy) -> None:
    """A transaction read the first record of another one, and not its second."""
    before, after = _pair(copy)
    _txn(copy, [before, after])
    _read(copy, _txn(copy, [], like=before), before)


@damage("read an intermediate state of a transaction", "g1b", "g1b")
def read_intermediate_state(copy: Copy) -> None:
    """A transaction read the first record of another one in a partition, and not its last."""
    before, after = _pair(copy)
    _txn(copy, [before, after])
    _read(copy, _txn(copy, [], like=before), before)


@damage("append behind an unread record", "lost_update", "lost_update")
def lose_update(copy: Copy) -> None:
    """A transaction read a record and appended, and another one had appended in between."""
    read, between, own = _three_in_a_partition(copy)
    _txn(copy, [between])
    _read(copy, _txn(copy, [own]), read)


@damage("let two transactions miss each other", "g2_item", "g2_item")
def miss_each_other(copy: Copy) -> None:
    """Two transactions read the same record and append, and neither reads what the other wrote."""
    read, left, right = _three_in_a_partition(copy)
    for own in (left, right):
        _read(copy, _txn(copy, [own]), read)


@damage("read a transaction that begins later", "g1c_realtime", "g1c realtime")
def read_the_future(copy: Copy) -> None:
    """A transaction read a record of another one, which began when it had ended."""
    victim = copy.take()
    begin_ns = _txn(copy, [victim])["begin_ns"]
    times = {"begin_ns": begin_ns - 3 * S, "commit_invoke_ns": begin_ns - 2 * S}
    _read(copy, _txn(copy, [], like=victim, end_ns=begin_ns - S, **times), victim)


@damage("pass over a record of a transaction", "fractured_read", "passed over", tail=True)
def pass_over_record(copy: Copy) -> Row:
    """A consumer received one record of a transaction and passed over another one."""
    victim = copy.take(lambda victim: bool(reads_amid_others(copy, victim)))
    read = reads_amid_others(copy, victim)[0]
    copy.rows("reads").remove(read)
    seen = first(
        other
        for other in copy.victims
        if _session_of(other) == _session_of(victim)
        and any(_session_of(row) == _session_of(read) for row in copy.of("reads", other))
    )
    copy.victims.remove(seen)
    _txn(copy, [victim, seen])
    return victim


@damage("answer an end before a complete transaction", "stale_end", "end")
def answer_stale_end(copy: Copy) -> None:
    """Readers of committed records receive an end at a record of a transaction, after a later one
    of its client has written."""
    victim, later = _pair(copy)
    _txn(copy, [victim])
    _txn(copy, [later])
    at_ns = max(_times(copy)) + S
    _answer(copy, victim, "stable", victim["offset"], at_ns, leader_epoch=NEWEST_EPOCH)


@damage("leave a transaction open", "hanging_txn", "open")
def leave_open(copy: Copy) -> None:
    """Long after everything the last stable offset lies below the end."""
    victim = copy.take()
    _txn(copy, [victim])
    late_ns = max(_times(copy)) + 600 * S
    _answer(copy, victim, "latest", max(_log_ends(copy)) + 7, copy.last_ns)
    _answer(copy, victim, "stable", victim["offset"], late_ns)


@damage("never release a transactional id", "hanging_txn", "kept")
def keep_transactional_id(copy: Copy) -> None:
    """A coordinator is never done with a transaction: its id is not to be had again."""
    victim = copy.take()
    transaction = _txn(copy, [victim])
    late_ns = max(_times(copy)) + 600 * S
    copy.rows("admin_ops").append(
        {"invoke_ns": late_ns, "complete_ns": late_ns + S, "outcome": "fail", "act": INITIALISE}
        | {"subject": transaction["transactional_id"], "before": None, "after": "{}"}
    )


def _pair(copy: Copy) -> tuple[Row, Row]:
    """Two victims of one client, in order."""
    victim = copy.take()
    other = first(row for row in copy.victims if _session_of(row) == _session_of(victim))
    del copy.victims[: copy.victims.index(other) + 3]
    return victim, other


def _three_in_a_partition(copy: Copy) -> tuple[Row, Row, Row]:
    """Three victims in the order of one partition."""
    victim = copy.take()
    others = [
        row for row in copy.victims
        if (row["topic_id"], row["partition"]) == (victim["topic_id"], victim["partition"])
    ]  # fmt: skip
    left, middle, right = sorted([victim, *others[:2]], key=lambda row: int(row["offset"]))
    for row in others[:2]:
        copy.victims.remove(row)
    return left, middle, right


def _session_of(row: Row) -> tuple[str, int]:
    return row["client"], row["session"]


def _txn(copy: Copy, sends: list[Row], *, like: Row | None = None, **changes: Any) -> Row:
    """A committed transaction around these sends of one client."""
    model = like or sends[0]
    number = FIRST + len(copy.rows("txns"))
    for send in sends:
        send["txn"] = number
    begin_ns = min([model["invoke_ns"], *(send["invoke_ns"] for send in sends)])
    end_ns = max([model["complete_ns"], *(send["complete_ns"] for send in sends)])
    row = {
        "client": model["client"],
        "session": model["session"],
        "txn": number,
        "transactional_id": f"made-up-{number}",
        "producer_id": None,
        "epoch": None,
        "begin_ns": begin_ns - 2,
        "commit_invoke_ns": begin_ns - 1,
        "end_ns": end_ns + 1,
        "outcome": "committed",
        "error": None,
        "init_invoke_ns": begin_ns - 2 * S,
        "init_ns": begin_ns - S,
        "late_end_ns": None,
    } | changes
    copy.rows("txns").append(row)
    return row


def _committed_pass(copy: Copy, victim: Row) -> None:
    """A final pass of a reader of committed records, like one that there is. Made once."""
    if any(row["client"] == READER for row in copy.rows("clients")):
        return
    done = first(
        row
        for row in copy.rows("passes")
        if row["final"] and row["complete"] and row["topic_id"] == victim["topic_id"]
    )
    whose = (done["client"], done["session"], done["pass"])
    model = first(row for row in copy.rows("clients") if _session_of(row) == whose[:2])
    named = {"client": READER, "isolation": "read_committed"}
    copy.rows("clients").append(model | named)
    copy.rows("passes").append(done | named)
    copy.rows("reads").extend(
        row | {"client": READER}
        for row in list(copy.rows("reads"))
        if (row["client"], row["session"], row["pass"]) == whose
        and row["topic_id"] == victim["topic_id"]
    )


def _answer(
    copy: Copy, victim: Row, query: str, offset: int, at_ns: int, leader_epoch: int | None = None
) -> None:
    copy.rows("offset_answers").append(
        {name: victim[name] for name in ("topic_id", "topic", "partition")}
        | {"node": 1, "invoke_ns": at_ns, "complete_ns": at_ns + 1, "query": query}
        | {"offset": offset, "api_version": None, "leader_epoch": leader_epoch}
        | {"timestamp_ms": None}
        | {"error": None}
    )


def _step(copy: Copy, source: Row, output: Row, position: int, group: str) -> None:
    """A read-process-write step after which the group's committed offset is `position`."""
    output["source"] = source["value_id"]
    _committed_pass(copy, source)
    txn = _txn(copy, [output])
    place = {name: source[name] for name in ("topic_id", "topic", "partition")}
    commit = place | {
        "client": txn["client"],
        "session": txn["session"],
        "group": group,
        "generation": None,
        "member_id": None,
        "offset": position,
        "error": None,
    }
    began = {"invoke_ns": txn["begin_ns"], "complete_ns": None, "outcome": "info"}
    copy.rows("commits").append(commit | began | {"processed_to": position, "txn": txn["txn"]})
    at_ns = max(_times(copy)) + S
    copy.rows("commit_reads").append(
        commit | {"invoke_ns": at_ns, "complete_ns": at_ns + 1, "outcome": "ok"}
    )


def _read(copy: Copy, txn: Row, victim: Row) -> None:
    """A transaction's own read of a record."""
    model = first(copy.of("reads", victim))
    whose = {name: txn[name] for name in ("client", "session", "txn")}
    copy.rows("reads").append(model | whose | {"pass": txn["txn"], "poll": txn["txn"]})


def _times(copy: Copy) -> list[int]:
    known = [copy.last_ns]
    for row in copy.rows("txns"):
        known += [row[name] or 0 for name in ("begin_ns", "commit_invoke_ns", "end_ns")]
    for row in copy.rows("faults"):
        known += [row["healed_ns"] or row["end_ns"] or 0]
    return known


def _log_ends(copy: Copy) -> list[int]:
    return [row["log_end"] for row in copy.rows("logs")]
