"""The guarantees, judged by what a simulation left behind: history, ZooKeeper's changes, the logs.

The rows of a small history are made from it, and the reference checks of the lab's guarantees judge
them (`harness/verify/reference.py`). What these checks leave out is judged here: `LOCAL`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from urteil.broker.wire.batches import iter_records, parse_header
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.reference import Reference, SmallHistory, Violation
from urteil.suites.simulation.client import (
    Answer,
    Assignment,
    Commit,
    CommitRead,
    History,
    Read,
    Send,
    Txn,
    sent_ms,
    value_id,
)
from urteil.suites.simulation.cluster import BROKERS, EPOCH_MS
from urteil.suites.simulation.groups import GROUP
from urteil.suites.simulation.storage import Disk
from urteil.suites.simulation.zookeeper import Change

Place = tuple[str, int]

_STATE = re.compile(r"/brokers/topics/(?!__)([^/]+)/partitions/(\d+)/state")
_SEGMENT = re.compile(r"/data/(?!__)(.+)-(\d+)/(\d{20})\.log")
"""Topics of the brokers' own are not judged."""
_MARKERS = ("abort", "commit")
_READ_COMMITTED = "read_committed"
_DAY_NS = 86_400 * 10**9
_WEEK_MS = 7 * 86_400_000


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica's log on its disk in the end; below `watermark` all must agree."""

    broker: int
    batches: tuple[tuple[int, bytes], ...]
    watermark: int
    log_start: int = 0
    segments: tuple[int, ...] = (0,)
    """Their base offsets."""


@dataclass(frozen=True, slots=True)
class Promises:
    """The settings of topics that brokers keep logs by, and when they had to have done it."""

    configs: Mapping[str, str] = field(default_factory=dict)
    late_s: float = 0.0
    """How long after its time a segment may still be."""
    calm_s: float = 0.0
    """When all was healed."""
    ends_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What a leader held of its partition at one moment."""

    at_s: float
    broker: int
    place: Place
    leader_epoch: int
    isr: tuple[int, ...]
    in_flight: bool


@dataclass(slots=True)
class Evidence:
    """All of it. `final` is the log as readers got it in the end."""

    history: History
    changes: list[Change]
    final: dict[Place, list[Read]]
    replicas: dict[Place, list[Replica]]
    glimpses: list[Glimpse]
    min_isr: int
    troubles: list[str] = field(default_factory=list)
    committed: dict[Place, tuple[list[Read], int]] = field(default_factory=dict)
    """The log as readers of committed records got it in the end, and where it ended for them."""
    txns_over_s: float | None = None
    """When every transaction had to have ended."""
    promises: Promises = field(default_factory=Promises)
    begins: dict[tuple[str, Place], int] = field(default_factory=dict)
    """Where the last pass of a reader over a partition began."""

    def acked(self) -> Iterator[Send]:
        return (send for send in self.history.sends if send.outcome == "ok")


@dataclass(frozen=True, slots=True)
class Finding:
    guarantee: str
    sentence: str


def judge(evidence: Evidence) -> list[Finding]:
    """Every anomaly, by guarantee."""
    history = small_history(evidence)
    findings = [Finding(name, _sentence(violation)) for name in REFERENCES
             for violation in sorted(_violations(name, history), key=str)]  # fmt: skip
    return findings + [
        Finding(name, sentence) for name, check in LOCAL for sentence in check(evidence)
    ]


def read_replicas(disk: Disk, broker: int, logs: Mapping[Place, Any]) -> dict[Place, Replica]:
    """The logs on a disk, straight from their segments; `logs` are the broker's own."""
    segments_of: dict[Place, dict[int, bytes]] = defaultdict(dict)
    for path in sorted(disk.files):
        if match := _SEGMENT.fullmatch(path):
            data = bytes(disk.files[path].data)
            segments_of[match[1], int(match[2])][int(match[3])] = data
    replicas = {}
    for place, segments in segments_of.items():
        log = logs.get(place)
        replicas[place] = Replica(
            broker,
            tuple(_batches(b"".join(segments.values()))),
            log.high_watermark if log else 0,
            log.log_start_offset if log else 0,
            tuple(segments),
        )
    return replicas


def _batches(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big") + 12
        yield int.from_bytes(data[at : at + 8], "big"), data[at : at + size]
        at += size


REFERENCES = (
    *("lost_write", "unseen", "vanished_read", "phantom", "aborted_read", "future_read"),
    *("duplicate", "inconsistent_offset", "misplaced_ack", "reordered_send", "sequence_gap"),
    *("stale_append", "causal_loss", "hole", "replica_divergence", "epoch_lineage"),
    *("two_leaders", "epoch_went_back", "unclean_leader"),
    *("torn_txn", "precommitted_read", "zombie_write", "hanging_txn"),
    *("commit_went_back", "generation_went_back", "two_owners", "zombie_commit"),
    *("latest_value_lost", "stale_value_visible", "tombstone_too_early", "resurrected_key"),
    *("compacted_too_early", "offset_renumbered"),
    *("retained_too_short", "kept_too_long", "segment_not_rolled"),
)
"""The guarantees whose reference checks a simulation can feed. `ack_below_min_isr` needs to know
which faults hid an ISR from its leader; here the leader's own memory is known instead."""

OF_IDEMPOTENT = ("duplicate", "reordered_send")
"""Without idempotence these are permitted, which reference checks leave to the excuses."""


def _violations(name: str, history: SmallHistory) -> Iterator[Violation]:
    check = _reference(name)
    for violation in check(history):
        send = history.sends_by_value.get(violation.value_id or "")
        if name not in OF_IDEMPOTENT or (send is not None and send.idempotent):
            yield violation


def _reference(name: str) -> Reference:
    check = GUARANTEES[name].reference
    assert check is not None, name
    return check


def _sentence(violation: Violation) -> str:
    at = "" if violation.offset is None else f" at offset {violation.offset}"
    value = "" if violation.value_id is None else f"{violation.value_id}, "
    return f"{value}{violation.topic}-{violation.partition}{at}: {violation.sub_kind or 'violated'}"


# The rows of a small history


def small_history(evidence: Evidence) -> SmallHistory:
    """What the simulation left, as rows of evidence.

    A partition without a leader's log has only its states: `no_progress` reports it.
    """
    tables: dict[str, list[dict[str, Any]]] = {
        "sends": [row for n, send in enumerate(evidence.history.sends) for row in _sends(n, send)],
        "reads": [_read(read, read.client, 0) for read in evidence.history.reads],
        "txns": [_txn(txn) for txn in evidence.history.txns],
        "clients": [
            _client(name, isolation=_READ_COMMITTED)
            for name in evidence.history.readers_of_committed
        ]
        + [
            _client(name, group=GROUP, instance=instance)
            for name, instance in evidence.history.instances.items()
        ],
        "assignments": [_assignment(row) for row in evidence.history.assignments],
        "commits": [_commit(row) for row in evidence.history.commits],
        "commit_reads": [
            _commit_read(row)
            for row in evidence.history.commit_reads
            if _is_of_coordinator(evidence, row)
        ],
        "offset_answers": [_answer(answer) for answer in evidence.history.answers],
        "states": [_state(*state) for state in states_of(evidence.changes)],
    }
    for name in ("passes", "logs", "replicas"):
        tables[name] = []
    for place, reads in evidence.final.items():
        tables["reads"] += [_read(read, "final", place[1]) for read in reads]
        tables["passes"].append(_pass(evidence, place, reads))
    for place, (reads, end) in evidence.committed.items():
        tables["reads"] += [_read(read, COMMITTED, place[1]) for read in reads]
        tables["passes"].append(_pass_of(COMMITTED, place, _READ_COMMITTED, end))
    for place, replicas in evidence.replicas.items():
        for replica in replicas:
            rows = _rows(replica)
            here = {"topic": place[0], "partition": place[1], "broker": replica.broker}
            tables["replicas"] += [here | row for row in rows]
            tables["logs"].append(here | _log(replica, rows))
    lost = leaderless(evidence)
    kept = {
        name: [row for row in rows
               if name in _UNPLACED or (row["topic"], row["partition"]) not in lost]
        for name, rows in tables.items()
    }  # fmt: skip
    own = {"min.insync.replicas": str(evidence.min_isr), **evidence.promises.configs}
    settings = {topic: own for topic, _ in evidence.replicas}
    ends_ns = _ns(evidence.promises.ends_s) or 0
    return SmallHistory.of(kept, settings, ends_ns, derived=_derived(evidence))


_UNPLACED = ("states", "txns", "clients")
COMMITTED = "final committed"
OFFSETS_STATE = "/brokers/topics/__consumer_offsets/partitions/0/state"


def _derived(evidence: Evidence) -> dict[str, list[dict[str, Any]]]:
    """Rows of derived tables that reference checks of transactions read."""
    over_ns = None if evidence.txns_over_s is None else _ns(evidence.txns_over_s)
    numbers = {place: p for p, place in enumerate(sorted(evidence.replicas))}
    led = _leaders(evidence)
    return {
        "settings": [{"txns_over_ns": over_ns, "wall_ns": EPOCH_MS * 1_000_000}],
        "partitions": [
            {"p": p, "topic": place[0], "partition": place[1]}
            | _kept_by(evidence.promises, _final_log(evidence, place, led.get(place)))
            for place, p in numbers.items()
        ],
        "answers": [
            {"p": numbers[answer.topic, answer.partition], "kind": answer.query}
            | _answer(answer)
            for answer in evidence.history.answers
            if (answer.topic, answer.partition) in numbers
        ],
    }  # fmt: skip


def _kept_by(promises: Promises, led: Replica | None) -> dict[str, Any]:
    """What is promised of one partition's log, as in the derived table `partitions`."""
    configs = promises.configs
    policy = configs.get("cleanup.policy", "delete")
    kept_ms = configs.get("retention.ms")
    return {
        "log_start": led.log_start if led else 0,
        "active_base": led.segments[-1] if led else -1,
        "ends_ns": _ns(promises.ends_s), "calm_ns": _ns(promises.calm_s),
        "late_ns": _ns(promises.late_s), "gone": False, "trimmed": False, "clock_moved": False,
        "compacted": "compact" in policy, "deletes": "delete" in policy,
        "unclean_on": False, "lost_floor": None, "short_ns": None,
        "retention_configured": kept_ms is not None,
        "retention_ns": int(kept_ms or _WEEK_MS) * 1_000_000,
        "retention_bytes": _number(configs.get("retention.bytes")),
        "segment_ms": _number(configs.get("segment.ms")),
        "segment_bytes": _number(configs.get("segment.bytes")),
        "dirty_ratio": None if (ratio := configs.get("min.cleanable.dirty.ratio")) is None
        else float(ratio),
        "min_lag_ns": 0, "delete_retention_ns": _DAY_NS,
    }  # fmt: skip


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _final_log(evidence: Evidence, place: Place, leader: int | None) -> Replica | None:
    return next((each for each in evidence.replicas[place] if each.broker == leader), None)


def _leaders(evidence: Evidence) -> dict[Place, int]:
    """The last leader of each partition."""
    return {
        place: state["leader"]
        for place, _, state in states_of(evidence.changes)
        if state["leader"] >= 0
    }


def leaderless(evidence: Evidence) -> set[Place]:
    """Partitions of which the last leader left no log, or of which no state is known."""
    led = _leaders(evidence)
    held = {(place, record.broker) for place, some in evidence.replicas.items() for record in some}
    places = {*evidence.final, *evidence.replicas, *led}
    places |= {(send.topic, send.partition) for send in evidence.history.sends}
    return {place for place in places if (place, led.get(place)) not in held}


def _sends(number: int, send: Send) -> Iterator[dict[str, Any]]:
    for n, value in enumerate(send.values):
        is_placed = send.outcome == "ok" and send.offset >= 0
        yield {
            "client": send.client, "session": send.session, "op": 1_000 * number + n, "acks": -1,
            "topic": send.topic, "partition": send.partition, "partition_intended": send.partition,
            "invoke_ns": _ns(send.begin_s), "complete_ns": _ns(send.end_s),
            "outcome": send.outcome, "offset": send.offset + n if is_placed else None,
            "node": send.node if send.node >= 0 else None, "attempts": send.attempts,
            "ambiguous": send.attempts > 1, "idempotent": send.producer_id >= 0,
            "producer_id": send.producer_id, "key": send.keys[n] if send.keys else None,
            "value_id": value, "tombstone": value in send.tombstones,
            "timestamp_ms": sent_ms(send), "txn": send.txn,
        }  # fmt: skip


def _read(read: Read, client: str, number: int) -> dict[str, Any]:
    return {
        "client": client, "session": 0, "pass": number, "topic": read.topic,
        "partition": read.partition, "offset": read.offset, "value_id": read.value,
        "leader_epoch": read.leader_epoch, "read_ns": _ns(read.at_s), "key": read.key,
        "intact": True, "timestamp_ms": read.timestamp_ms,
    }  # fmt: skip


def _pass(evidence: Evidence, place: Place, reads: list[Read]) -> dict[str, Any]:
    """The final reads of a partition: they had to reach the highest watermark."""
    marks = [replica.watermark for replica in evidence.replicas.get(place, ())]
    end = max([*marks, *(read.offset + 1 for read in reads)])
    begin = evidence.begins.get(("final", place), 0)
    return _pass_of("final", place, "read_uncommitted", end, begin)


def _pass_of(client: str, place: Place, isolation: str, end: int, begin: int = 0) -> dict[str, Any]:
    return {
        "client": client, "session": 0, "pass": place[1], "topic": place[0],
        "partition": place[1], "isolation": isolation, "final": True, "complete": True,
        "from_offset": begin, "to_offset": end,
    }  # fmt: skip


def _txn(txn: Txn) -> dict[str, Any]:
    return {
        "client": txn.client, "session": txn.session, "txn": txn.number,
        "transactional_id": txn.transactional_id, "producer_id": txn.producer_id,
        "epoch": txn.epoch, "begin_ns": _ns(txn.begin_s), "commit_invoke_ns": _ns(txn.commit_s),
        "end_ns": _ns(txn.end_s), "outcome": txn.outcome, "error": None,
        "init_invoke_ns": _ns(txn.init_invoke_s), "init_ns": _ns(txn.init_s), "late_end_ns": None,
    }  # fmt: skip


def _client(name: str, **known: str) -> dict[str, Any]:
    return {"client": name, "session": 0, "kind": "consumer", "isolation": None, "group": None,
            "instance": None} | known  # fmt: skip


def _assignment(row: Assignment) -> dict[str, Any]:
    return {
        "client": row.client, "session": 0, "group": GROUP, "generation": row.generation,
        "member_id": row.member_id, "event": row.event, "topic": row.topic,
        "partition": row.partition, "at_ns": _ns(row.at_s), "member_epoch": None,
    }  # fmt: skip


def _commit(row: Commit) -> dict[str, Any]:
    return {
        "client": row.client, "session": 0, "group": GROUP, "generation": row.generation,
        "member_id": row.member_id, "topic": row.topic, "partition": row.partition,
        "offset": row.offset, "invoke_ns": _ns(row.invoke_s), "complete_ns": _ns(row.complete_s),
        "outcome": row.outcome, "error": row.error, "processed_to": None, "txn": None,
        "member_epoch": None,
    }  # fmt: skip


def _commit_read(row: CommitRead) -> dict[str, Any]:
    return {
        "client": row.client, "session": 0, "group": GROUP, "generation": None,
        "member_id": None, "topic": row.topic, "partition": row.partition,
        "offset": row.offset, "invoke_ns": _ns(row.invoke_s), "complete_ns": _ns(row.complete_s),
        "outcome": "ok", "error": None, "intact": None,
    }  # fmt: skip


def _is_of_coordinator(evidence: Evidence, row: CommitRead) -> bool:
    """Whether the broker that answered led the offsets topic all the while: a deposed coordinator
    may answer until it hears of its successor."""
    leaders = [
        (change.at_s, json.loads(change.data)["leader"])
        for change in evidence.changes
        if change.path == OFFSETS_STATE and change.data is not None
    ]
    before = [leader for at_s, leader in leaders if at_s <= row.invoke_s][-1:]
    during = [leader for at_s, leader in leaders if row.invoke_s < at_s <= row.complete_s]
    return {*before, *during} == {row.node}


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "client": answer.client, "session": 0, "topic": answer.topic,
        "partition": answer.partition, "query": answer.query, "offset": answer.offset,
        "node": answer.node, "invoke_ns": _ns(answer.invoke_s),
        "complete_ns": _ns(answer.complete_s), "error": None,
    }  # fmt: skip


def _rows(replica: Replica) -> list[dict[str, Any]]:
    """The rows of a log."""
    rows, segments = [], replica.segments
    for base, batch in replica.batches:
        while len(segments) > 1 and segments[1] <= base:
            segments = segments[1:]
        rows += [{"segment_base": segments[0]} | row for row in _records(base, batch)]
    return rows


def _records(base: int, batch: bytes) -> Iterator[dict[str, Any]]:
    """A row for each record of a batch on a disk, or for its marker."""
    header = parse_header(batch)
    row = {
        "leader_epoch": header.partition_leader_epoch, "batch_base": base, "batch_crc": header.crc,
        "batch_bytes": len(batch), "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch, "key": None, "control": None,
        "transactional": header.is_transactional, "intact": True, "timestamp_ms": None,
    }  # fmt: skip
    if header.is_control:
        (marker,) = iter_records(batch)
        kind = _MARKERS[int.from_bytes((marker.key or b"")[2:4], "big")]
        yield row | {"offset": base, "value_id": None, "control": kind, "sequence": -1}
        return
    for record in iter_records(batch):
        is_numbered = header.producer_id >= 0
        yield row | {
            "offset": record.offset, "value_id": value_id(record),
            "sequence": header.base_sequence + record.offset - base if is_numbered else -1,
            "key": None if record.key is None else record.key.decode(),
            "timestamp_ms": record.timestamp_ms,
        }  # fmt: skip


def _log(replica: Replica, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A log's row: its records say its epochs."""
    epochs: dict[int, int] = {}
    for row in rows:
        epochs.setdefault(row["leader_epoch"], row["offset"])
    return {
        "log_start": replica.log_start,
        "log_end": max((row["offset"] + 1 for row in rows), default=replica.log_start),
        "active_base": replica.segments[-1],
        "high_watermark": replica.watermark, "recovery_point": None, "epochs": json.dumps(epochs),
    }  # fmt: skip


def _state(place: Place, change: Change, state: dict[str, Any]) -> dict[str, Any]:
    names = ("leader", "leader_epoch", "controller_epoch")
    return {
        "topic": place[0], "partition": place[1], "zxid": change.zxid, "at_ns": _ns(change.at_s),
        "version": change.version, "isr": json.dumps(state["isr"]),
        "replicas": json.dumps(list(BROKERS)), "elr": None,
        "wall_ms": EPOCH_MS + round(change.at_s * 1000),
        **{name: state[name] for name in names},
    }  # fmt: skip


def _ns(seconds: float) -> int | None:
    """Nanoseconds; None for a time that never came."""
    return None if seconds < 0 else round(seconds * 1e9)


# What reference checks leave out


def first_sequence(evidence: Evidence) -> Iterator[str]:
    """The first sequence of a producer in a log is 0. The reference check accepts any, as a log may
    have lost its begin; here only those of topics with limits have."""
    if evidence.promises.configs:
        return
    for place, replicas in evidence.replicas.items():
        for replica in replicas:
            producers: set[tuple[int, int]] = set()
            for base, batch in replica.batches:
                header = parse_header(batch)
                producer, sequence = header.producer_id, header.base_sequence
                if producer < 0 or header.is_control:
                    continue
                if (producer, header.producer_epoch) not in producers and sequence != 0:
                    yield f"{place} on {replica.broker}: {producer} begins at {sequence}, {base}"
                producers.add((producer, header.producer_epoch))


def ack_below_min_isr(evidence: Evidence) -> Iterator[str]:
    """A leader whose memory shows too small an ISR before and after, and the same between, may not
    acknowledge what was invoked and answered in that time. No journal of the lab has its memory."""
    spans: dict[tuple[Place, int], list[tuple[float, float]]] = defaultdict(list)
    begun: dict[tuple[Place, int], Glimpse] = {}
    for glimpse in evidence.glimpses:
        key = (glimpse.place, glimpse.broker)
        before = begun.get(key)
        same = before and (before.isr, before.leader_epoch) == (glimpse.isr, glimpse.leader_epoch)
        if glimpse.in_flight or len(glimpse.isr) >= evidence.min_isr:
            begun.pop(key, None)
        elif same and before:
            spans[key].append((before.at_s, glimpse.at_s))
        else:
            begun[key] = glimpse
    for send in evidence.acked():
        for since, until in spans.get(((send.topic, send.partition), send.node), ()):
            if since < send.begin_s and send.end_s < until and send.attempts == 1:
                yield f"{send.values[0]} at {send.end_s:.3f} s by {send.node}"
                break


def no_progress(evidence: Evidence) -> Iterator[str]:
    """Troubles that the simulation itself noticed."""
    yield from evidence.troubles
    for place in sorted(leaderless(evidence)):
        yield f"{place} has no log of a leader"


LOCAL: tuple[tuple[str, Callable[[Evidence], Iterable[str]]], ...] = (
    ("sequence_gap", first_sequence),
    ("ack_below_min_isr", ack_below_min_isr),
    ("no_progress", no_progress),
)


def states_of(changes: list[Change]) -> Iterator[tuple[Place, Change, dict[str, Any]]]:
    """Every version of every partition's state."""
    for change in changes:
        match = _STATE.fullmatch(change.path)
        if match and change.data is not None:
            yield (match[1], int(match[2])), change, json.loads(change.data)
