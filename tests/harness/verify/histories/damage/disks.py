"""Damage to logs on disk: replicas, epochs, retention."""

from __future__ import annotations

import json

from tests.harness.verify.histories.damage.piece import Piece, Unfit
from tests.harness.verify.histories.history import RETENTION_NS
from tests.harness.verify.histories.log import END_NS, Row, S, wall_ms
from urteil.harness.verify.damage import Trace
from urteil.harness.verify.limits import STOPPING_NS


def miss_on_a_follower(piece: Piece) -> Trace:
    victim = piece.victim()
    led = piece.leader(victim["partition"])
    copy = piece.pick(row for row in piece.of("replicas", victim) if row["broker"] != led)
    piece.rows("replicas").remove(copy)
    return Trace("replica_divergence", "missing", victim["offset"])


def miss_a_marker(piece: Piece) -> Trace:
    led = {p: piece.leader(p) for p in (0, 1)}
    marker = piece.pick(
        row
        for row in piece.rows("replicas")
        if row["control"] is not None and row["broker"] != led[row["partition"]]
    )
    piece.rows("replicas").remove(marker)
    return Trace("replica_divergence", "missing", marker["offset"])


def write_on_after_an_end_in_a_later_epoch(piece: Piece) -> Trace:
    """A marker has a later epoch than its producer's later records."""
    led = {p: piece.leader(p) for p in (0, 1)}
    rows = [row for row in piece.rows("replicas") if row["broker"] == led[row["partition"]]]
    rows = [row for row in sorted(rows, key=lambda row: int(row["offset"])) if row["transactional"]]
    marker, after = piece.pick(
        (row, later[0])
        for n, row in enumerate(rows)
        if row["control"] is not None
        if (later := [later_row for later_row in rows[n + 1 :] if _same_producer(row, later_row)])
        if later[0]["control"] is None
    )
    for row in piece.rows("replicas"):
        if row["partition"] == marker["partition"] and row["offset"] == marker["offset"]:
            row["producer_epoch"] += 1
    return Trace("zombie_write", "older epoch", after["offset"])


def _same_producer(left: Row, right: Row) -> bool:
    return all(left[name] == right[name] for name in ("partition", "producer_id", "producer_epoch"))


def end_in_a_hole(piece: Piece) -> Trace:
    """A log's end is beyond its last record."""
    log = piece.pick(piece.rows("logs"))
    end = log["log_end"]
    log["log_end"] += 5
    return Trace("hole", "gap", end)


def run_ahead_of_the_end(piece: Piece) -> Trace:
    """A checkpoint is beyond a log's end."""
    log = piece.pick(piece.rows("logs"))
    log[piece.random.choice(("high_watermark", "recovery_point"))] = log["log_end"] + 5
    return Trace("replica_divergence", "beyond its end", log["log_end"])


def forget_an_epoch(piece: Piece) -> Trace:
    """A replica's checkpoint lacks an epoch of which it has records."""
    log = piece.pick(piece.rows("logs"))
    epochs = json.loads(log["epochs"])
    used: dict[str, int] = {}
    for row in piece.rows("replicas"):
        same = row["broker"] == log["broker"] and row["partition"] == log["partition"]
        if same and str(row["leader_epoch"]) in epochs:
            epoch = str(row["leader_epoch"])
            used[epoch] = min(used.get(epoch, row["offset"]), row["offset"])
    epoch = piece.random.choice(sorted(e for e in used if epochs[e] >= log["log_start"]) or [""])
    if not epoch:
        raise Unfit
    log["epochs"] = json.dumps({e: at for e, at in epochs.items() if e != epoch})
    return Trace("epoch_lineage", "forgotten", epochs[epoch])


def delete_too_early(piece: Piece) -> Trace:
    """Every log's start passed records that were young when the run ended."""
    young_ns = END_NS + 60 * S + STOPPING_NS - RETENTION_NS
    victim = piece.victim()
    start = victim["offset"] + 1
    victim["timestamp_ms"] = wall_ms(young_ns) + 500
    for table in ("reads", "replicas"):
        piece.drop(table, lambda r: r["partition"] == victim["partition"] and r["offset"] < start)
    for row in piece.rows("logs"):
        if row["partition"] == victim["partition"]:
            row["log_start"] = max(start, row["log_start"])
    for row in piece.rows("passes"):
        if row["partition"] == victim["partition"] and row["final"]:
            row["from_offset"] = max(start, row["from_offset"])
    return Trace("retained_too_short", "too early", victim["offset"])
