"""Damage to topics from which a cleaner or retention removed records."""

from __future__ import annotations

from collections.abc import Callable

from tests.harness.verify.histories.damage.piece import Piece, Unfit
from tests.harness.verify.histories.damage.positions import reads_by_pass
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


def _last_committed(piece: Piece) -> Row:
    """The last value of a key, in a transaction whose commit was acknowledged."""
    committed = {row["value_id"] for row in piece.committed()}
    open_ = {row["value_id"] for row in piece.rows("sends") if row["txn"] is not None} - committed
    return piece.pick(
        rows[-1]
        for rows in _of_keys(piece).values()
        if rows and rows[-1]["value_id"] in committed and not rows[-1]["tombstone"]
        if all(row["value_id"] not in open_ for row in rows)
    )


def clean_a_committed_value(piece: Piece) -> Trace:
    last = _last_committed(piece)
    piece.lose(last)
    return Trace("latest_value_lost", "", last["offset"])


def serve_a_committed_value_to_others_alone(piece: Piece) -> Trace:
    """One leader does not serve a value to readers of committed records at the end."""
    last = _last_committed(piece)
    read = piece.pick(
        row for row in piece.of("reads", last) if "-final-read_committed" in row["client"]
    )
    piece.rows("reads").remove(read)
    return Trace("latest_value_lost", "not served", last["offset"])


def _on_a_follower(piece: Piece, fits: Callable[[Row], bool]) -> Row:
    led = {partition: piece.leader(partition) for partition in (0, 1)}
    return piece.pick(
        row
        for row in piece.rows("replicas")
        if row["broker"] != led[row["partition"]] and fits(row)
    )


def miss_a_young_marker(piece: Piece) -> Trace:
    marker = _on_a_follower(piece, lambda row: row["control"] is not None)
    piece.rows("replicas").remove(marker)
    return Trace("replica_divergence", "missing", marker["offset"])


def end_otherwise_on_a_follower(piece: Piece) -> Trace:
    marker = _on_a_follower(piece, lambda row: row["control"] is not None)
    marker["control"] = "abort" if marker["control"] == "commit" else "commit"
    return Trace("replica_divergence", "content", marker["offset"])


def write_a_record_in_another_epoch(piece: Piece) -> Trace:
    record = _on_a_follower(piece, lambda row: row["value_id"] is not None)
    record["leader_epoch"] += 1
    return Trace("replica_divergence", "leader epoch", record["offset"])


def clean_the_active_segment_of_a_follower(piece: Piece) -> Trace:
    bases = {row["partition"]: row["active_base"] for row in piece.rows("logs")}
    victim = piece.victim(lambda row: int(row["offset"]) >= bases[row["partition"]])
    led = piece.leader(victim["partition"])
    copy = piece.pick(row for row in piece.of("replicas", victim) if row["broker"] != led)
    piece.rows("replicas").remove(copy)
    return Trace("compacted_too_early", "active segment, on some replicas", victim["offset"])


def lose_far_out(piece: Piece) -> Trace:
    """The last value of a key, 40,000,000 offsets behind the first ones."""
    *_, last = _last_of_a_key(piece, tombstone=False, far=True)
    piece.lose(last)
    return Trace("latest_value_lost", "", last["offset"])


def bring_back_a_key(piece: Piece) -> Trace:
    """The tombstone is missing, and an older value is present."""
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


def clean_a_key_beside_an_unknown_send(piece: Piece) -> Trace:
    """Nothing of a key is left, and one of its sends has no answer."""
    sends = piece.pick(
        rows
        for rows in _of_keys(piece).values()
        if len(rows) > 1 and not any(row["tombstone"] for row in rows)
        if all(row["offset"] is not None for row in rows)
    )
    first, last = sends[0], sends[-1]
    first |= {"outcome": "info", "offset": None, "ambiguous": True}
    for send in sends:
        piece.lose(send)
    return Trace("latest_value_lost", "absent", last["offset"])


def skip_a_last_value(piece: Piece) -> Trace:
    """A live reader does not receive the last value of a key, in the middle of a poll."""
    last = {
        rows[-1]["value_id"] for rows in _of_keys(piece).values()
        if rows and not rows[-1]["tombstone"]
    }  # fmt: skip
    read = piece.pick(
        row
        for reads in reads_by_pass(piece).values()
        for before, row, after in zip(reads, reads[1:], reads[2:], strict=False)
        if before["poll"] == row["poll"] == after["poll"] and row["value_id"] in last
    )
    piece.rows("reads").remove(read)
    return Trace("poll_skip", "gap", read["offset"])


def serve_an_aborted_record_that_was_cleaned(piece: Piece) -> Trace:
    """A live reader of committed records received a record that its client aborted."""
    aborted = {
        (row["client"], row["session"], row["txn"])
        for row in piece.rows("txns")
        if row["outcome"] == "aborted" and row.get("commit_invoke_ns") is None
    }
    victim = piece.victim(lambda row: (row["client"], row["session"], row["txn"]) in aborted)
    reader = piece.pick(
        row["client"] for row in piece.rows("clients")
        if row.get("isolation") == "read_committed" and "-c" in row["client"]
    )  # fmt: skip
    read = piece.pick(piece.of("reads", victim))
    piece.lose(victim)
    piece.rows("reads").append(read | {"client": reader, "pass": 99, "poll": 9_999})
    return Trace("aborted_read", "aborted by its client", victim["offset"])


def receive_a_deleted_record_twice(piece: Piece) -> Trace:
    """A live reader received one record at two offsets, before retention deleted both."""
    starts = {row["partition"]: row["log_start"] for row in piece.rows("logs")}
    read = piece.pick(
        row
        for reads in reads_by_pass(piece).values()
        for row in reads
        if row["value_id"] and row["offset"] + 1 < starts[row["partition"]]
    )
    piece.rows("reads").append(read | {"offset": read["offset"] + 1, "poll": 9_999})
    return Trace("duplicate", "read", read["offset"])
