"""Damage to a generated history beyond the canary's: each answers what must be found, and where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

from tests.harness.verify.histories.history import FAR, RETENTION_NS
from tests.harness.verify.histories.log import END_NS, MS, Row, S, wall_ms
from urteil.harness.verify.damage import Trace
from urteil.harness.verify.promises import STOPPING_NS

T = TypeVar("T")
Tables = dict[str, list[Row]]
RECORDS = ("sends", "reads", "replicas")


class Unfit(Exception):
    """The history has nothing that could be damaged so: another seed has."""


@dataclass(slots=True)
class Piece:
    """The rows about one topic; rows are changed in place, `drop` and `add` change tables."""

    tables: Tables
    topic: str
    random: Random
    taken: set[str] = field(default_factory=set)

    def rows(self, table: str) -> list[Row]:
        return self.tables.setdefault(table, [])

    def drop(self, table: str, gone: Callable[[Row], bool]) -> None:
        self.tables[table] = [row for row in self.rows(table) if not gone(row)]

    def of(self, table: str, victim: Row) -> list[Row]:
        return [row for row in self.rows(table) if row["value_id"] == victim["value_id"]]

    def lose(self, victim: Row, *tables: str) -> None:
        for table in tables or ("reads", "replicas"):
            self.drop(table, lambda row: row["value_id"] == victim["value_id"])

    def is_final(self, row: Row) -> bool:
        return "-final-" in row["client"]

    def leader(self, partition: int) -> int:
        return int(self.states(partition)[-1]["leader"])

    def states(self, partition: int) -> list[Row]:
        mine = [row for row in self.rows("states") if row["partition"] == partition]
        return sorted(mine, key=lambda row: int(row["version"]))

    def pick(self, rows: Iterable[T]) -> T:
        """One of `rows` by the seed; Unfit without any."""
        found = list(rows)
        if not found:
            raise Unfit
        return self.random.choice(found)

    def victim(self, fits: Callable[[Row], bool] = lambda row: True) -> Row:
        """An acknowledged send of acks=all that lies on every disk once, where it should."""
        return self.pick(row for row in self.sound() if fits(row))

    def sound(self) -> list[Row]:
        places: dict[str, set[int]] = {}
        copies: dict[str, int] = {}
        for row in self.rows("replicas"):
            places.setdefault(row["value_id"], set()).add(row["offset"])
            copies[row["value_id"]] = copies.get(row["value_id"], 0) + 1
        return [
            row
            for row in self.rows("sends")
            if row["outcome"] == "ok" and row["acks"] == -1 and row["offset"] is not None
            if places.get(row["value_id"]) == {row["offset"]} and copies[row["value_id"]] == 3
        ]


Apply = Callable[[Piece], Trace]


# -- what was sent ------------------------------------------------------------------------------


def lose_the_tail(piece: Piece) -> Trace:
    """Every log ends earlier than it did, and nothing else is missing."""
    partition = piece.random.choice((0, 1))
    cut = max((r["offset"] for r in piece.sound() if r["partition"] == partition), default=None)
    if cut is None:
        raise Unfit
    for table in ("reads", "replicas"):
        piece.drop(table, lambda row: row["partition"] == partition and row["offset"] >= cut)
    for row in piece.rows("logs"):
        if row["partition"] == partition:
            epochs = {e: min(at, cut) for e, at in json.loads(row["epochs"]).items()}
            row |= {"log_end": cut, "high_watermark": cut, "epochs": json.dumps(epochs)}
    for row in piece.rows("passes"):
        if row["partition"] == partition:
            row["to_offset"] = min(row["to_offset"], cut)
    return Trace("lost_write", "tail", cut)


def lose_in_the_middle(piece: Piece) -> Trace:
    victim = piece.victim()
    piece.lose(victim)
    return Trace("lost_write", "", victim["offset"])


def lose_what_was_read_once(piece: Piece) -> Trace:
    """Of unknown outcome, given to a live reader, gone in the end."""
    read = piece.pick(r for r in piece.rows("reads") if not piece.is_final(r) and _sole(piece, r))
    send = piece.of("sends", read)[0]
    send |= {"outcome": "info", "offset": None, "ambiguous": True, "error": "KafkaTimeoutError"}
    for table in ("reads", "replicas"):
        piece.drop(table, lambda row: row["value_id"] == send["value_id"] and row is not read)
    return Trace("lost_write", "", read["offset"])


def _sole(piece: Piece, read: Row) -> bool:
    return any(row["value_id"] == read["value_id"] for row in piece.sound())


def lose_without_an_offset(piece: Piece) -> Trace:
    """Acknowledged as a duplicate whose offset the broker did not know, and gone."""
    victim = piece.victim()
    piece.lose(victim)
    victim["offset"] = None
    return Trace("lost_write", "unplaced", None)


def lose_under_acks_one(piece: Piece) -> Trace:
    """acks=1, but replicated long before leadership changed, and long after it had."""
    led = {row["value_id"] for row in piece.rows("replicas")}
    victim = piece.pick(
        row
        for row in piece.rows("sends")
        if row["acks"] == 1 and row["outcome"] == "ok" and row["value_id"] in led
        if all(one["offset"] == row["offset"] for one in piece.of("replicas", row))
        if not any(
            abs(state["at_ns"] - row["invoke_ns"]) < 3 * S
            for state in piece.states(row["partition"])
        )
    )
    piece.lose(victim)
    return Trace("lost_write", "", victim["offset"])


def lose_at_the_leader(piece: Piece) -> Trace:
    victim = piece.victim()
    led = piece.leader(victim["partition"])
    piece.drop("replicas", lambda r: r["value_id"] == victim["value_id"] and r["broker"] == led)
    piece.lose(victim, "reads")
    return Trace("lost_write", "", victim["offset"])


def serve_no_more(piece: Piece) -> Trace:
    victim = piece.victim()
    piece.drop("reads", lambda r: r["value_id"] == victim["value_id"] and piece.is_final(r))
    return Trace("lost_write", "not served", victim["offset"])


def write_an_unknown_one_twice(piece: Piece) -> Trace:
    """An idempotent producer never heard of it, and it is there twice."""
    victim = piece.victim(lambda row: bool(row["idempotent"]))
    partition = victim["partition"]
    end = max(row["log_end"] for row in piece.rows("logs") if row["partition"] == partition)
    victim |= {"outcome": "info", "offset": None, "ambiguous": True}
    for row in list(piece.of("replicas", victim)):
        piece.rows("replicas").append(row | {"offset": end, "batch_base": end, "sequence": -1})
    for row in piece.rows("logs"):
        if row["partition"] == partition:
            row |= {"log_end": end + 1, "high_watermark": end + 1}
    return Trace("duplicate", "log", victim_offset(piece, victim))


def victim_offset(piece: Piece, victim: Row) -> int:
    return min(int(row["offset"]) for row in piece.of("replicas", victim))


def keep_an_unknown_one_on_one_disk(piece: Piece) -> Trace:
    """It took effect in part: on one replica, below the high watermark."""
    victim = piece.victim()
    led = piece.leader(victim["partition"])
    keep = 1 + led % 3
    victim |= {"outcome": "info", "offset": None, "ambiguous": True}
    offset = victim_offset(piece, victim)
    piece.drop("replicas", lambda r: r["value_id"] == victim["value_id"] and r["broker"] != keep)
    piece.lose(victim, "reads")
    return Trace("replica_divergence", "missing", offset)


def show_an_unknown_one_to_some(piece: Piece) -> Trace:
    """Of unknown outcome: one final pass has it, the next does not."""
    victim = piece.victim()
    offset = victim["offset"]
    victim |= {"outcome": "info", "offset": None, "ambiguous": True}
    piece.rows("reads").remove(
        piece.pick(r for r in piece.of("reads", victim) if piece.is_final(r))
    )
    return Trace("vanished_read", "", offset)


def deny_what_is_there(piece: Piece) -> Trace:
    victim = piece.victim()
    offset = victim["offset"]
    victim |= {"outcome": "fail", "offset": None, "ambiguous": False, "error": "MESSAGE_TOO_LARGE"}
    return Trace("aborted_read", "", offset)


def forget_the_send(piece: Piece) -> Trace:
    victim = piece.victim()
    piece.lose(victim, "sends")
    return Trace("phantom", "no invocation", victim["offset"])


def write_to_another_partition(piece: Piece) -> Trace:
    victim = piece.victim()
    victim |= {"partition": 1 - victim["partition"], "partition_intended": 1 - victim["partition"]}
    return Trace("phantom", "another partition", victim["offset"])


def acknowledge_one_offset_twice(piece: Piece) -> Trace:
    victim = piece.victim()
    other = piece.pick(
        row
        for row in piece.sound()
        if row["partition"] == victim["partition"] and row["offset"] != victim["offset"]
    )
    other["offset"] = victim["offset"]
    return Trace("inconsistent_offset", "", victim["offset"])


def acknowledge_too_far(piece: Piece) -> Trace:
    """One past where it lies."""
    victim = piece.victim()
    victim["offset"] += 1
    return Trace("misplaced_ack", "elsewhere", victim["offset"])


def acknowledge_before_it_was_sent(piece: Piece) -> Trace:
    """Its offset is lower than what was acknowledged long before its invocation."""
    ends = {row["partition"]: row["log_end"] for row in piece.rows("logs")}
    victim = piece.victim(lambda row: int(row["offset"]) < ends[row["partition"]] // 2)
    victim |= {"invoke_ns": END_NS - 2, "complete_ns": END_NS - 1}
    return Trace("stale_append", "real-time order", victim["offset"])


def repeat_a_sequence(piece: Piece) -> Trace:
    victim = piece.victim(lambda row: bool(row["idempotent"]))
    numbers = {row["sequence"] for row in piece.of("replicas", victim)}
    if numbers == {0}:
        raise Unfit
    for row in piece.of("replicas", victim):
        row["sequence"] += 100
    return Trace("sequence_gap", "", victim["offset"])


def lower_a_producer_epoch(piece: Piece) -> Trace:
    """A zombie's batch behind one of its successor."""
    ends: dict[tuple[int, int], Row] = {}
    for row in piece.rows("replicas"):
        if row["producer_epoch"] > 0 and row["control"] is None and not row["transactional"]:
            key = (row["partition"], row["producer_id"])
            ends[key] = max(row, ends.get(key, row), key=lambda one: int(one["offset"]))
    last = piece.pick(ends.values())
    before = [
        row
        for row in piece.rows("replicas")
        if row["producer_id"] == last["producer_id"] and row["offset"] < last["offset"]
        if row["partition"] == last["partition"]
    ]
    if not before or max(before, key=lambda r: int(r["offset"]))["producer_epoch"] == 0:
        raise Unfit
    for row in piece.of("replicas", last):
        row["producer_epoch"] = 0
    return Trace("sequence_gap", "epoch fell", last["offset"])


# -- what was read ------------------------------------------------------------------------------


def _tails(piece: Piece) -> dict[tuple[Any, ...], list[Row]]:
    """Reads of live readers by client, session and pass, in order."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in piece.rows("reads"):
        if "-c" in row["client"]:
            found.setdefault((row["client"], row["session"], row["pass"]), []).append(row)
    return found


def skip_first_of_a_new_process(piece: Piece) -> Trace:
    """A new process begins at a position and is not given what lies there."""
    begun = {
        (row["client"], row["session"], row["pass"]): row["from_offset"]
        for row in piece.rows("passes")
    }
    read = piece.pick(
        reads[0]
        for key, reads in _tails(piece).items()
        if key[1] > 0 and key[2] == 0 and len(reads) > 1 and reads[0]["offset"] == begun[key]
    )
    piece.rows("reads").remove(read)
    return Trace("poll_skip", "gap", read["offset"])


def skip_after_a_seek(piece: Piece) -> Trace:
    """Between two polls, the second of which comes after a seek long before."""
    seeks = [row for row in piece.rows("polls") if row["event"] == "seek"]
    for reads in _tails(piece).values():
        for number, row in enumerate(reads[2:-1], 2):
            sought = any(
                one["client"] == row["client"] and one["session"] == row["session"]
                and one["poll"] < reads[number - 1]["poll"] for one in seeks
            )  # fmt: skip
            before = reads[number - 1]
            follows = before["offset"] + 1 == row["offset"] and before["poll"] == row["poll"]
            if sought and follows:
                piece.rows("reads").remove(row)
                return Trace("poll_skip", "gap", row["offset"])
    raise Unfit


def go_back_in_a_poll(piece: Piece) -> Trace:
    """Two records of one poll in the wrong order."""
    pairs = [
        (left, right)
        for reads in _tails(piece).values()
        for left, right in pairwise(reads)
        if left["poll"] == right["poll"]
    ]
    if not pairs:
        raise Unfit
    left, right = piece.random.choice(pairs)
    places = left["position_in_poll"], right["position_in_poll"]
    right["position_in_poll"], left["position_in_poll"] = places
    return Trace("nonmonotonic_poll", "reads", left["offset"])


def tell_an_older_position(piece: Piece) -> Trace:
    polls = [row for row in piece.rows("polls") if row["event"] is None and "-c" in row["client"]]
    for one, two in pairwise(polls):
        same = all(one[name] == two[name] for name in ("client", "session", "partition"))
        same = same and one["poll"] < two["poll"] and not _moved_between(piece, one, two)
        if same and one["position_after"] == two["position_before"] > 0:
            two["position_before"] -= 1
            return Trace("nonmonotonic_poll", "position", two["position_before"])
    raise Unfit


def _moved_between(piece: Piece, one: Row, two: Row) -> bool:
    return any(
        row["event"] and row["client"] == one["client"] and row["session"] == one["session"]
        and one["poll"] <= row["poll"] <= two["poll"]
        for row in piece.rows("polls")
    )  # fmt: skip


def skip_after_a_rebalance(piece: Piece) -> Trace:
    """A member is not given the record at the position that it was told."""
    for asked in piece.rows("commit_reads"):
        if asked.get("generation") is None or asked["offset"] is None:
            continue
        reads = [
            row
            for row in piece.rows("reads")
            if row["client"] == asked["client"] and row["partition"] == asked["partition"]
            if row.get("generation") == asked["generation"]
        ]
        if len(reads) > 1 and reads[0]["offset"] == asked["offset"]:
            piece.rows("reads").remove(reads[0])
            return Trace("poll_skip", "after a rebalance", reads[0]["offset"])
    raise Unfit


def commit_past_a_record(piece: Piece) -> Trace:
    """No member of the group ever processed it, in any process or generation."""
    tops: dict[int, int] = {}
    for row in piece.rows("commits"):
        if row["outcome"] == "ok":
            tops[row["partition"]] = max(tops.get(row["partition"], 0), row["offset"])
    victim = piece.victim(lambda row: int(row["offset"]) < tops.get(row["partition"], 0))
    piece.drop("reads", lambda r: r["value_id"] == victim["value_id"] and "-g" in r["client"])
    return Trace("commit_beyond_processed", "not processed", victim["offset"])


def show_another_record(piece: Piece) -> Trace:
    victim, other = piece.victim(), piece.victim()
    if victim is other or victim["partition"] != other["partition"]:
        raise Unfit
    read = piece.pick(piece.of("reads", victim))
    read |= {"value_id": other["value_id"], "key": other["key"]}
    return Trace("inconsistent_offset", "read", victim["offset"])


def break_a_read(piece: Piece) -> Trace:
    read = piece.pick(piece.of("reads", piece.victim()))
    read["intact"] = False
    return Trace("corrupt", "served", read["offset"])


def change_a_key(piece: Piece) -> Trace:
    victim = piece.victim()
    piece.pick(piece.of("replicas", victim))["key"] = "another"
    return Trace("phantom", "another key", victim["offset"])


def read_before_the_send(piece: Piece) -> Trace:
    read = piece.pick(piece.of("reads", piece.victim()))
    read["read_ns"] = piece.of("sends", read)[0]["invoke_ns"] - 1
    return Trace("future_read", "before its send", read["offset"])


def deliver_twice_in_a_pass(piece: Piece) -> Trace:
    victim = piece.victim()
    read = piece.pick(r for r in piece.of("reads", victim) if piece.is_final(r))
    piece.rows("reads").append(dict(read))
    return Trace("duplicate", "one offset twice", victim["offset"])


def show_an_aborted_record(piece: Piece) -> Trace:
    """A reader of committed records is given one of an aborted transaction."""
    aborted = {
        (row["client"], row["session"], row["txn"])
        for row in piece.rows("txns")
        if row["outcome"] == "aborted"
    }
    sends = {
        row["value_id"]
        for row in piece.rows("sends")
        if (row["client"], row["session"], row["txn"]) in aborted
    }
    read = piece.pick(
        row for row in piece.rows("reads") if row["value_id"] in sends and piece.is_final(row)
    )
    client = f"{piece.topic}-final-read_committed"
    mine = [row for row in piece.rows("reads") if row["client"] == client]
    other = piece.pick(row for row in mine if row["partition"] == read["partition"])
    where = {name: other[name] for name in ("client", "pass", "poll", "read_ns")}
    piece.rows("reads").append(read | where | {"position_in_poll": 10_000})
    return Trace("aborted_read", "aborted transaction", read["offset"])


# -- disks, compaction, retention ---------------------------------------------------------------


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


def end_in_a_hole(piece: Piece) -> Trace:
    """A log says that it goes on beyond its last record."""
    log = piece.pick(piece.rows("logs"))
    end = log["log_end"]
    log["log_end"] += 5
    return Trace("hole", "gap", end)


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


def lose_far_out(piece: Piece) -> Trace:
    """The last value of a key, 40,000,000 offsets behind the first ones."""
    *_, last = _last_of_a_key(piece, tombstone=False, far=True)
    piece.lose(last)
    return Trace("latest_value_lost", "", last["offset"])


def bring_back_a_key(piece: Piece) -> Trace:
    """The tombstone is gone, an older value is not."""
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


# -- what brokers and ZooKeeper said ------------------------------------------------------------


def _answer(piece: Piece, partition: int, **told: Any) -> None:
    last = piece.states(partition)[-1]
    at_ns = END_NS + 50 * S + len(piece.rows("offset_answers"))
    answer = {name: last[name] for name in ("run", "topic_id", "topic", "partition")}
    answer |= {"node": last["leader"], "leader_epoch": last["leader_epoch"], "api_version": 7}
    piece.rows("offset_answers").append(
        answer | {"invoke_ns": at_ns, "complete_ns": at_ns + 1} | told
    )


def find_no_time(piece: Piece) -> Trace:
    victim = piece.victim()
    stamp_ms = max(row["timestamp_ms"] for row in piece.of("replicas", victim))
    _answer(piece, victim["partition"], query=f"time:{stamp_ms}", offset=-1)
    return Trace("time_index_wrong", "none", -1)


def find_a_time_too_early(piece: Piece) -> Trace:
    victim = piece.victim()
    stamps = {row["offset"]: row["timestamp_ms"] for row in piece.rows("replicas")
              if row["partition"] == victim["partition"]}  # fmt: skip
    asked_ms = stamps[victim["offset"]]
    before = [offset for offset, stamp in stamps.items() if stamp < asked_ms]
    if not before:
        raise Unfit
    _answer(piece, victim["partition"], query=f"time:{asked_ms}", offset=max(before))
    return Trace("time_index_wrong", "too early", max(before))


def let_the_end_fall(piece: Piece) -> Trace:
    log = piece.pick(piece.rows("logs"))
    _answer(piece, log["partition"], query="latest", offset=log["log_end"])
    _answer(piece, log["partition"], query="latest", offset=log["log_end"] - 1)
    return Trace("latest_went_back", "fell", log["log_end"] - 1)


def tell_an_end_below_an_ack(piece: Piece) -> Trace:
    victim = piece.victim()
    _answer(piece, victim["partition"], query="latest, once more", offset=victim["offset"])
    return Trace("end_below_ack", "behind", victim["offset"])


def answer_as_another_leader(piece: Piece) -> Trace:
    log = piece.pick(piece.rows("logs"))
    led = piece.leader(log["partition"])
    _answer(piece, log["partition"], query="latest", offset=log["log_end"], node=1 + led % 3)
    return Trace("disagreement", "another leads", None)


def _state(piece: Piece, partition: int, **told: Any) -> Row:
    last = piece.states(partition)[-1]
    after = {"zxid": last["zxid"] + 100_000, "version": last["version"] + 1}
    state = last | after | {"at_ns": last["at_ns"] + S} | told
    piece.rows("states").append(state)
    return state


def acknowledge_below_min_isr(piece: Piece) -> Trace:
    """Acknowledged by a leader that had long been alone, as its state says."""
    alone = [
        (one, two)
        for partition in (0, 1)
        for one, two in pairwise(piece.states(partition))
        if "," not in one["isr"] and two["at_ns"] - one["at_ns"] > S + 300 * MS
    ]
    victim, led = piece.pick(
        (row, one["leader"])
        for one, two in alone
        for row in piece.rows("sends")
        if row["partition"] == one["partition"] and row["error"] == "NOT_ENOUGH_REPLICAS"
        if row["invoke_ns"] > one["at_ns"] + S and row["complete_ns"] < two["at_ns"] - 250 * MS
    )
    victim |= {"outcome": "ok", "error": None, "offset": 7, "node": led}
    return Trace("ack_below_min_isr", "acknowledged", 7)


def elect_from_outside(piece: Piece) -> Trace:
    epoch = piece.states(0)[-1]["leader_epoch"]
    led = piece.leader(0)
    outside = 1 + led % 3
    others = [broker for broker in (1, 2, 3) if broker != outside]
    _state(piece, 0, isr=str(others))
    _state(piece, 0, leader=outside, leader_epoch=epoch + 1, isr="[1, 2, 3]")
    _state(piece, 0, leader=led, leader_epoch=epoch + 2, isr="[1, 2, 3]")
    return Trace("unclean_leader", "outside the ISR", None)


def lead_twice_in_an_epoch(piece: Piece) -> Trace:
    led = piece.leader(1)
    _state(piece, 1, leader=1 + led % 3)
    _state(piece, 1, leader=led, leader_epoch=piece.states(1)[-1]["leader_epoch"] + 1)
    return Trace("two_leaders", "two in one epoch", None)


def lower_an_epoch(piece: Piece) -> Trace:
    _state(piece, 0, leader_epoch=piece.states(0)[-1]["leader_epoch"] - 1)
    return Trace("epoch_went_back", "leader", None)


def acknowledge_by_another(piece: Piece) -> Trace:
    victim = piece.victim(lambda row: row["attempts"] == 1)
    victim["node"] = 1 + victim["node"] % 3
    return Trace("two_leaders", "", None)


# -- groups -------------------------------------------------------------------------------------


def own_twice(piece: Piece) -> Trace:
    given = piece.pick(r for r in piece.rows("assignments") if r["event"] == "assigned")
    other = next(
        row["client"]
        for row in piece.rows("clients")
        if row["kind"] == "group" and row["client"] != given["client"]
    )
    piece.rows("assignments").append(given | {"client": other, "member_id": "another"})
    return Trace("two_owners", "one generation", None)


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


ANY: tuple[Apply, ...] = (
    lose_the_tail, lose_in_the_middle, lose_what_was_read_once, lose_without_an_offset,
    lose_at_the_leader, serve_no_more, write_an_unknown_one_twice,
    keep_an_unknown_one_on_one_disk, show_an_unknown_one_to_some, deny_what_is_there,
    forget_the_send, write_to_another_partition, acknowledge_one_offset_twice,
    acknowledge_too_far, acknowledge_before_it_was_sent, repeat_a_sequence,
    lower_a_producer_epoch, skip_first_of_a_new_process, skip_after_a_seek, go_back_in_a_poll,
    tell_an_older_position, skip_after_a_rebalance, commit_past_a_record, show_another_record,
    break_a_read, change_a_key, read_before_the_send, deliver_twice_in_a_pass,
    miss_on_a_follower, end_in_a_hole, forget_an_epoch, find_no_time, find_a_time_too_early,
    let_the_end_fall, tell_an_end_below_an_ack, answer_as_another_leader,
    acknowledge_below_min_isr,
    elect_from_outside,
    lead_twice_in_an_epoch, lower_an_epoch, acknowledge_by_another, own_twice,
    accept_a_late_commit, forget_a_commit, invent_a_commit,
)  # fmt: skip
"""Done to plain topics."""

OF_KIND: dict[str, tuple[Apply, ...]] = {
    "plain": ANY,
    "lax": (lose_under_acks_one,),
    "transactional": (show_an_aborted_record, miss_a_marker),
    "compacted": (
        clean_the_last_value, lose_far_out, bring_back_a_key, drop_a_tombstone,
        clean_the_active_segment, renumber,
    ),
    "retained": (delete_too_early,),
}  # fmt: skip
"""Damage by the kind of topic that it is done to."""
