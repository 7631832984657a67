"""The guarantees, judged by what a simulation left behind: history, ZooKeeper's changes, the logs.

The rows of a small history are made from it, and the reference checks of the lab's guarantees judge
them (`harness/verify/reference.py`). What these checks leave out is judged here: `LOCAL`.
"""

from __future__ import annotations

import json
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.reference import Reference, SmallHistory, Violation
from urteil.suites.simulation.client import History, Read, Send, records_of
from urteil.suites.simulation.cluster import BROKERS
from urteil.suites.simulation.storage import Disk
from urteil.suites.simulation.zookeeper import Change

Place = tuple[str, int]

_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_PRODUCER = struct.Struct(">qhii")
_SEGMENT = re.compile(r"/data/(.+)-(\d+)/(\d{20})\.log")


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
        "states": [_state(*state) for state in states_of(evidence.changes)],
    }
    for name in ("passes", "logs", "replicas"):
        tables[name] = []
    for place, reads in evidence.final.items():
        tables["reads"] += [_read(read, "final", place[1]) for read in reads]
        tables["passes"].append(_pass(evidence, place, reads))
    for place, replicas in evidence.replicas.items():
        for replica in replicas:
            rows = [row for base, batch in replica.batches for row in _records(base, batch)]
            here = {"topic": place[0], "partition": place[1], "broker": replica.broker}
            tables["replicas"] += [here | row for row in rows]
            tables["logs"].append(here | _log(replica, rows))
    lost = leaderless(evidence)
    kept = {
        name: [row for row in rows
               if name == "states" or (row["topic"], row["partition"]) not in lost]
        for name, rows in tables.items()
    }  # fmt: skip
    settings = {topic: {"min.insync.replicas": str(evidence.min_isr)}
                for topic, _ in evidence.replicas}  # fmt: skip
    return SmallHistory.of(kept, settings)


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
            "client": send.client, "session": 0, "op": 1_000 * number + n, "acks": -1,
            "topic": send.topic, "partition": send.partition, "partition_intended": send.partition,
            "invoke_ns": _ns(send.begin_s), "complete_ns": _ns(send.end_s),
            "outcome": send.outcome, "offset": send.offset + n if is_placed else None,
            "node": send.node if send.node >= 0 else None, "attempts": send.attempts,
            "ambiguous": send.attempts > 1, "idempotent": send.producer_id >= 0,
            "producer_id": send.producer_id, "key": None, "value_id": value, "timestamp_ms": None,
            "txn": None,
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
    return {
        "client": "final", "session": 0, "pass": place[1], "topic": place[0],
        "partition": place[1], "isolation": "read_uncommitted", "final": True, "complete": True,
        "from_offset": 0, "to_offset": max([*marks, *(read.offset + 1 for read in reads)]),
    }  # fmt: skip


def _records(base: int, batch: bytes) -> Iterator[dict[str, Any]]:
    """A row for each record of a batch on a disk."""
    producer_id, producer_epoch, sequence, _ = _PRODUCER.unpack_from(batch, 43)
    for offset, value, epoch in records_of(batch):
        yield {
            "offset": offset, "value_id": value, "leader_epoch": epoch, "batch_base": base,
            "batch_crc": int.from_bytes(batch[17:21], "big"), "batch_bytes": len(batch),
            "producer_id": producer_id, "producer_epoch": producer_epoch,
            "sequence": sequence + offset - base if producer_id >= 0 else -1, "key": None,
            "control": None, "transactional": False, "intact": True, "timestamp_ms": None,
        }  # fmt: skip


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
                producer_id, epoch, sequence, _ = _PRODUCER.unpack_from(batch, 43)
                if producer_id >= 0 and (producer_id, epoch) not in producers and sequence != 0:
                    yield f"{place} on {replica.broker}: {producer_id} begins at {sequence}, {base}"
                producers.add((producer_id, epoch))


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
