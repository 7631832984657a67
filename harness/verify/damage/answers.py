"""Damage to what brokers answer, and to the indexes on their disks."""

from __future__ import annotations

import json
from typing import Any

from urteil.harness.verify.damage.copy import (
    Copy,
    S,
    Untried,
    brokers,
    damage,
    first,
    leader,
    states,
)
from urteil.harness.verify.evidence import Row

_LATER_NS = 300 * S
LATER = 6
MADE_UP_EPOCH = 1_000_000
"""Another damage adds it to every log."""


@damage("lose a record on which later sends depend", "causal_loss", "acknowledged")
def lose_causal_past(copy: Copy) -> Row:
    """A record is lost whose client went on in its knowledge."""
    victim = copy.take(lambda victim: _goes_on(copy, victim))
    for table in ("replicas", "reads"):
        copy.drop(table, lambda row: row["value_id"] == victim["value_id"])
    return victim


def _goes_on(copy: Copy, victim: Row) -> bool:
    """Whether the victim's client sent enough later on, of which other damages leave some."""
    later = [
        row
        for row in copy.victims
        if row["client"] == victim["client"] and row["invoke_ns"] > victim["complete_ns"]
    ]
    return len(later) > LATER


def _answer(copy: Copy, after_ns: int, offset: int | None, **changes: Any) -> None:
    last = states(copy)[-1]
    at_ns = copy.last_ns + after_ns
    copy.rows("offset_answers").append(
        {
            "node": leader(copy),
            "invoke_ns": at_ns,
            "complete_ns": at_ns + 1,
            "api_version": 7,
            "query": "latest",
            "topic_id": last["topic_id"],
            "topic": last["topic"],
            "partition": last["partition"],
            "offset": offset,
            "leader_epoch": last["leader_epoch"],
            "timestamp_ms": None,
            "error": None,
        }
        | changes
    )


@damage("lower an answered log end", "latest_went_back", "fell")
def lower_end(copy: Copy) -> int:
    end = max(row["log_end"] for row in copy.rows("logs"))
    _answer(copy, _LATER_NS, end + 100)
    _answer(copy, _LATER_NS + S, end + 50)
    return int(end + 50)


@damage("answer an end below an acknowledgement", "end_below_ack", "behind")
def answer_old_end(copy: Copy) -> Row:
    victim = copy.take()
    _answer(copy, _LATER_NS, victim["offset"], query="latest, once more")
    return victim


@damage("begin a final pass too late", "unseen", "before the begin", at_the_ends=True)
def begin_pass_too_late(copy: Copy) -> Row:
    """A final pass begins above an acknowledged offset."""
    victim = copy.victims.pop(0)
    final_pass = first(row for row in copy.rows("passes") if row["final"] and row["complete"])
    final_pass["from_offset"] = victim["offset"] + 1
    _answer(copy, _LATER_NS, victim["offset"] + 1, query="earliest")
    name = tuple(final_pass[column] for column in ("client", "session", "pass"))
    copy.drop(
        "reads",
        lambda row: (
            row["offset"] <= victim["offset"]
            and (row["client"], row["session"], row["pass"]) == name
        ),
    )
    return victim


@damage("serve deleted records", "undeleted_records", "fetched")
def serve_deleted_records(copy: Copy) -> Row:
    """A fetch from before the log start that the broker answered is not refused."""
    victim = copy.take()
    start = victim["offset"] + 1
    _answer(copy, _LATER_NS, victim["offset"], query=f"before:{start}", timestamp_ms=None)
    return victim


@damage("answer an epoch's end too late", "epoch_lineage", "told")
def answer_epoch_end_too_late(copy: Copy) -> int:
    """The answered end of a past epoch is one record too late."""
    log = next(row for row in copy.rows("logs") if row["broker"] == leader(copy))
    epochs = sorted((int(e), start) for e, start in json.loads(log["epochs"] or "{}").items())
    known = [(e, start) for e, start in epochs[1:] if e < MADE_UP_EPOCH]
    later = [(e, start) for e, start in known if start > (log["log_start"] or 0)]
    if not later:
        raise Untried("a log of one epoch")
    epoch, start = later[-1]
    _answer(copy, _LATER_NS, start + 1, query=f"epoch:{epoch - 1} in {epoch}")
    return int(start + 1)


@damage("find a time too late", "time_index_wrong", "too late")
def find_time_too_late(copy: Copy) -> Row:
    victim, later = copy.take(), copy.take()
    times = [row["timestamp_ms"] for row in copy.of("replicas", victim)]
    if not times or times[0] is None or later["offset"] <= victim["offset"]:
        raise Untried("records without times")
    _answer(copy, _LATER_NS, later["offset"], query="time", timestamp_ms=times[0])
    return later


@damage("find an older time than the largest", "time_index_wrong", "not the newest")
def find_older_time(copy: Copy) -> Row:
    """The record with the largest time is one before which a newer one was known."""
    newest = _of_largest_time(copy)
    victim = copy.take(lambda row: _stamp(copy, row) < newest)
    answer = {"query": "max", "timestamp_ms": _stamp(copy, victim), "leader_epoch": None}
    _answer(copy, _LATER_NS, victim["offset"], **answer)
    return victim


@damage("find a time in another epoch", "time_index_wrong", "other epoch")
def find_time_in_another_epoch(copy: Copy) -> Row:
    """A record is found by its time, and answered with another epoch than the log's."""
    victim = copy.take(lambda row: _stamp(copy, row) >= 0)
    (*_, row) = copy.of("replicas", victim)
    stamp_ms = _stamp(copy, victim)
    answer = {"query": f"time:{stamp_ms}", "timestamp_ms": stamp_ms}
    _answer(copy, _LATER_NS, victim["offset"], **answer, leader_epoch=row["leader_epoch"] + 1)
    return victim


def _stamp(copy: Copy, victim: Row) -> int:
    """A record's time, -1 where its log does not know it."""
    stamps = [row["timestamp_ms"] for row in copy.of("replicas", victim)]
    return -1 if not stamps or stamps[0] is None else int(stamps[0])


def _of_largest_time(copy: Copy) -> int:
    takeable = {victim["value_id"] for victim in copy.victims}
    stamps = (row["timestamp_ms"] for row in copy.rows("replicas") if row["value_id"] in takeable)
    return max((stamp for stamp in stamps if stamp is not None), default=-1)


@damage("give two producers one id", "sequence_gap", "shared id")
def share_producer_id(copy: Copy) -> None:
    for number in range(2):
        _answer(copy, _LATER_NS + number, 4711, query="producer", leader_epoch=None)


@damage("name another leader", "disagreement", "metadata")
def name_another_leader(copy: Copy) -> None:
    """Long after the last change one broker still says that another leads."""
    last = states(copy)[-1]
    place = {"topic_id": last["topic_id"], "partition": last["partition"]}
    common = {"at_ns": copy.last_ns + _LATER_NS, "source": f"b{brokers(copy)[0]}"}
    common |= {"labels": json.dumps(place)}
    epoch = float(last["leader_epoch"] - 1)
    copy.rows("samples").extend(
        [
            common | {"metric": "metadata_leader", "value": float(last["leader"] + 1000)},
            common | {"metric": "metadata_leader_epoch", "value": epoch},
        ]
    )


@damage("misplace an index entry", "index_wrong", "offset")
def misplace_index_entry(copy: Copy) -> Row:
    """An entry of an offset index that points behind its batch."""
    victim: Row = copy.take()
    copy.rows("indexes").append(
        {
            "broker": brokers(copy)[0],
            "topic_id": states(copy)[-1]["topic_id"],
            "topic": victim["topic"],
            "partition": victim["partition"],
            "segment_base": 0,
            "kind": "offset",
            "entry": 10_000,
            "offset": victim["offset"],
            "position": 1,
            "there": "batch",
            "there_base": victim["offset"] + 1,
            "there_last": victim["offset"] + 1,
        }
    )
    return victim


@damage("answer a log start that cannot be fetched", "wrong_log_start", "turned away")
def answer_wrong_log_start(copy: Copy) -> int:
    """Long after the rest a final reader receives a log start again and again, and is out of range
    there."""
    begin_ns, start = copy.last_ns + 2 * _LATER_NS, 7
    model = first(row for row in copy.rows("passes") if row["final"] and row["complete"])
    reader = {"client": "made up sent away", "session": 1}
    times = {"begin_ns": begin_ns, "end_ns": begin_ns + 60 * S}
    ends = {"from_offset": start, "to_offset": start + 2, "complete": False}
    copy.rows("passes").append(model | reader | times | ends)
    absent = ("topic_id", "topic", "partition", "event", "position_before", "position_after")
    for number in range(300):
        at_ns = begin_ns + number * S // 10
        refused = {"outcome": "fail", "error": "OffsetOutOfRangeError"}
        poll = {"poll": number, "invoke_ns": at_ns - 1, "complete_ns": at_ns}
        copy.rows("polls").append(dict.fromkeys(absent) | reader | poll | refused)
        after_ns = at_ns + 1 - copy.last_ns
        _answer(copy, after_ns, start, query="earliest", api_version=5)
    return start
