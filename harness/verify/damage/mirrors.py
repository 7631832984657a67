"""Damage to a made-up mirror of the copy's partition, and to the offsets translated to it."""

from __future__ import annotations

from urteil.harness.clients.payload import COPY
from urteil.harness.verify.damage.added_topics import MIRROR
from urteil.harness.verify.damage.copy import Copy, S, Untried, damage
from urteil.harness.verify.evidence import Row

BROKER = 11
GROUP = "made-up-mirrored-group"


def mirror(copy: Copy) -> list[Row]:
    """The rows of the mirror's log, one for each victim, in log order. Made once."""
    rows = [row for row in copy.rows("replicas") if row["topic_id"] == MIRROR]
    if not rows and len(copy.victims) >= 8:
        rows = [_mirror_copy(copy, victim, offset) for offset, victim in enumerate(copy.victims)]
        copy.rows("replicas").extend(rows)
        place = {name: rows[0][name] for name in ("topic_id", "topic", "partition", "broker")}
        ends = {"log_start": 0, "log_end": len(rows), "high_watermark": len(rows)}
        copy.rows("logs").append(copy.rows("logs")[0] | place | ends | {"epochs": '{"0": 0}'})
    if len(rows) < 8:
        raise Untried("too few records")
    return sorted(rows, key=lambda row: int(row["offset"]))


def _mirror_copy(copy: Copy, victim: Row, offset: int) -> Row:
    like = copy.of("replicas", victim)[0]
    return like | {
        "topic_id": MIRROR, "topic": f"east.{victim['topic']}", "broker": BROKER, "offset": offset,
        "value_id": f"{COPY}{victim['value_id']}", "batch_base": offset, "segment_base": 0,
        "leader_epoch": 0, "producer_id": -1, "producer_epoch": -1, "sequence": -1,
    }  # fmt: skip


def _source(copy: Copy, row: Row) -> Row:
    """The send of a mirrored record."""
    value = str(row["value_id"]).removeprefix(COPY)
    return next(row for row in copy.rows("sends") if row["value_id"] == value)


@damage("skip a record of a mirror", "mirror_gap", "skipped", at_the_ends=True)
def skip_mirrored(copy: Copy) -> Row:
    row = mirror(copy)[2]
    copy.rows("replicas").remove(row)
    return _source(copy, row)


@damage("swap two records of a mirror", "mirror_order", "order", at_the_ends=True)
def swap_mirrored(copy: Copy) -> Row:
    early, late = mirror(copy)[-3:-1]
    early["value_id"], late["value_id"] = late["value_id"], early["value_id"]
    return _source(copy, early)


@damage("translate a committed offset too far", "translated_too_far", "too far", at_the_ends=True)
def translate_too_far(copy: Copy) -> int:
    rows = mirror(copy)
    committed, shown = rows[3], rows[5]
    source = _source(copy, committed)
    client = copy.rows("clients")[0]
    request = {"client": client["client"], "session": client["session"], "group": GROUP}
    times: Row = {"invoke_ns": copy.last_ns + S, "complete_ns": copy.last_ns + 2 * S}
    times["outcome"] = "ok"
    place = {name: source[name] for name in ("topic_id", "topic", "partition")}
    copy.rows("commits").append(request | times | place | {"offset": source["offset"]})
    later = {name: times[name] + 2 * S for name in ("invoke_ns", "complete_ns")}
    place = {name: shown[name] for name in ("topic_id", "topic", "partition")}
    read = request | times | later | place | {"offset": shown["offset"]}
    copy.rows("commit_reads").append(read)
    return int(shown["offset"])
