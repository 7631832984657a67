"""The guarantees, judged by what a simulation left behind: history, ZooKeeper's changes, the logs.

The rows of a small history are made from it, and the reference checks of the lab's guarantees judge
them (`harness/verify/reference.py`). What these checks leave out is judged here: `LOCAL`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from urteil.broker.wire.batches import iter_records, parse_header
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.reference import Reference, SmallHistory, Violation
from urteil.suites.simulation.client import Answer, History, Read, Send, Txn, batch_records
from urteil.suites.simulation.cluster import BROKERS
from urteil.suites.simulation.storage import Disk
from urteil.suites.simulation.zookeeper import Change

Place = tuple[str, int]

_STATE = re.compile(r"/brokers/topics/(?!__)([^/]+)/partitions/(\d+)/state")
_SEGMENT = re.compile(r"/data/(?!__)(.+)-(\d+)/(\d{20})\.log")
"""Topics of the brokers' own are not judged."""
_MARKERS = ("abort", "commit")
_READ_COMMITTED = "read_committed"
_DAY_NS = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica's log on its disk in the end; below `watermark` all must agree."""

    broker: int
    batches: tuple[tuple[int, bytes], ...]
    watermark: int


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


def read_replicas(disk: Disk, broker: int, watermarks: dict[Place, int]) -> dict[Place, Replica]:
    """The logs on a disk, straight from their segments."""
    segments_of: dict[Place, list[bytes]] = defaultdict(list)
    for path in sorted(disk.files):
        if match := _SEGMENT.fullmatch(path):
            segments_of[match[1], int(match[2])].append(bytes(disk.files[path].data))
    replicas = {}
    for place, segments in segments_of.items():
        data = b"".join(segments)
        replicas[place] = Replica(broker, tuple(_batches(data)), watermarks.get(place, 0))
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
        "clients": [_reader(name) for name in evidence.history.readers_of_committed],
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
            rows = [row for base, batch in replica.batches for row in _records(base, batch)]
            here = {"topic": place[0], "partition": place[1], "broker": replica.broker}
            tables["replicas"] += [here | row for row in rows]
            tables["logs"].append(here | _log(replica, rows))
    lost = leaderless(evidence)
    kept = {
        name: [row for row in rows
               if name in _UNPLACED or (row["topic"], row["partition"]) not in lost]
        for name, rows in tables.items()
    }  # fmt: skip
    settings = {topic: {"min.insync.replicas": str(evidence.min_isr)}
                for topic, _ in evidence.replicas}  # fmt: skip
    return SmallHistory.of(kept, settings, derived=_derived(evidence))


_UNPLACED = ("states", "txns", "clients")
COMMITTED = "final committed"


def _derived(evidence: Evidence) -> dict[str, list[dict[str, Any]]]:
    """Rows of derived tables that reference checks of transactions read."""
    over_ns = None if evidence.txns_over_s is None else _ns(evidence.txns_over_s)
    numbers = {place: p for p, place in enumerate(sorted(evidence.replicas))}
    return {
        "settings": [{"txns_over_ns": over_ns}],
        "partitions": [
            {"p": p, "topic": topic, "partition": partition, "log_start": 0, "ends_ns": 0,
             "delete_retention_ns": _DAY_NS, "clock_moved": False}
            for (topic, partition), p in numbers.items()
        ],
        "answers": [
            {"p": numbers[answer.topic, answer.partition], "kind": answer.query}
            | _answer(answer)
            for answer in evidence.history.answers
            if (answer.topic, answer.partition) in numbers
        ],
    }  # fmt: skip


def leaderless(evidence: Evidence) -> set[Place]:
    """Partitions of which the last leader left no log, or of which no state is known."""
    led: dict[Place, int] = {}
    for place, _, state in states_of(evidence.changes):
        if state["leader"] >= 0:
            led[place] = state["leader"]
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
            "producer_id": send.producer_id, "key": None, "value_id": value, "timestamp_ms": None,
            "txn": send.txn,
        }  # fmt: skip


def _read(read: Read, client: str, number: int) -> dict[str, Any]:
    return {
        "client": client, "session": 0, "pass": number, "topic": read.topic,
        "partition": read.partition, "offset": read.offset, "value_id": read.value,
        "leader_epoch": read.leader_epoch, "read_ns": _ns(read.at_s), "key": None, "intact": True,
        "timestamp_ms": None,
    }  # fmt: skip


def _pass(evidence: Evidence, place: Place, reads: list[Read]) -> dict[str, Any]:
    """The final reads of a partition: they had to reach the highest watermark."""
    marks = [replica.watermark for replica in evidence.replicas.get(place, ())]
    end = max([*marks, *(read.offset + 1 for read in reads)])
    return _pass_of("final", place, "read_uncommitted", end)


def _pass_of(client: str, place: Place, isolation: str, end: int) -> dict[str, Any]:
    return {
        "client": client, "session": 0, "pass": place[1], "topic": place[0],
        "partition": place[1], "isolation": isolation, "final": True, "complete": True,
        "from_offset": 0, "to_offset": end,
    }  # fmt: skip


def _txn(txn: Txn) -> dict[str, Any]:
    return {
        "client": txn.client, "session": txn.session, "txn": txn.number,
        "transactional_id": txn.transactional_id, "producer_id": txn.producer_id,
        "epoch": txn.epoch, "begin_ns": _ns(txn.begin_s), "commit_invoke_ns": _ns(txn.commit_s),
        "end_ns": _ns(txn.end_s), "outcome": txn.outcome, "error": None,
        "init_invoke_ns": _ns(txn.init_invoke_s), "init_ns": _ns(txn.init_s), "late_end_ns": None,
    }  # fmt: skip


def _reader(name: str) -> dict[str, Any]:
    return {"client": name, "session": 0, "kind": "consumer", "isolation": _READ_COMMITTED,
            "group": None, "instance": None}  # fmt: skip


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "client": answer.client, "session": 0, "topic": answer.topic,
        "partition": answer.partition, "query": answer.query, "offset": answer.offset,
        "node": answer.node, "invoke_ns": _ns(answer.invoke_s),
        "complete_ns": _ns(answer.complete_s), "error": None,
    }  # fmt: skip


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
    for offset, value, _ in batch_records(header, batch):
        sequence = header.base_sequence + offset - base if header.producer_id >= 0 else -1
        yield row | {"offset": offset, "value_id": value, "sequence": sequence}


def _log(replica: Replica, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A log's row: it begins at 0, as nothing is deleted, and its records say its epochs."""
    epochs: dict[int, int] = {}
    for row in rows:
        epochs.setdefault(row["leader_epoch"], row["offset"])
    return {
        "log_start": 0, "log_end": max((row["offset"] + 1 for row in rows), default=0),
        "high_watermark": replica.watermark, "recovery_point": None, "epochs": json.dumps(epochs),
    }  # fmt: skip


def _state(place: Place, change: Change, state: dict[str, Any]) -> dict[str, Any]:
    names = ("leader", "leader_epoch", "controller_epoch")
    return {
        "topic": place[0], "partition": place[1], "zxid": change.zxid, "at_ns": _ns(change.at_s),
        "version": change.version, "isr": json.dumps(state["isr"]),
        "replicas": json.dumps(list(BROKERS)), "elr": None,
        **{name: state[name] for name in names},
    }  # fmt: skip


def _ns(seconds: float) -> int | None:
    """Nanoseconds; None for a time that never came."""
    return None if seconds < 0 else round(seconds * 1e9)


# What reference checks leave out


def first_sequence(evidence: Evidence) -> Iterator[str]:
    """The first sequence of a producer in a log is 0. The reference check accepts any, as a log may
    have lost its begin; here none has."""
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
