"""What a simulation left, as rows of the lab's tables of evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from urteil.broker.wire.batches import iter_records, parse_header
from urteil.broker.wire.errors import ErrorCode
from urteil.harness.verify.reference import SmallHistory
from urteil.suites.simulation.client import LOOKUP_VERSION
from urteil.suites.simulation.cluster import BROKERS, EPOCH_MS
from urteil.suites.simulation.evidence import (
    COMMITTED,
    OFFSETS_STATE,
    Evidence,
    Place,
    Promises,
    Replica,
    final_leaders,
    leaderless,
    states_of,
)
from urteil.suites.simulation.fetched_records import control_kind, value_id
from urteil.suites.simulation.groups import GROUP
from urteil.suites.simulation.history import (
    Answer,
    Assignment,
    Commit,
    CommitRead,
    Poll,
    Questioned,
    Read,
    Send,
    Txn,
    sent_ms,
)
from urteil.suites.simulation.interval_tables import CONTROLLER, REGISTRATIONS, interval_tables
from urteil.suites.simulation.zookeeper import Change

_ASSIGNMENT = re.compile(r"/brokers/topics/[^/]+")
_READ_COMMITTED = "read_committed"
_DAY_NS = 86_400 * 10**9
_WEEK_MS = 7 * 86_400_000
_UNPLACED = ("txns", "clients", "accesses")
_NO_BATCH = dict.fromkeys(
    ("there", "there_base", "there_last", "there_timestamp_ms", "before_timestamp_ms")
)
"""Of an index entry that points at no batch."""
_OUT_OF_RANGE = "OffsetOutOfRangeError"
"""The name of the error in the lab's journals."""


TABLES = ("sends", "reads", "passes", "states", "logs", "replicas")
"""Those that runs of the replication mix fill."""


def rows_of(evidence: Evidence) -> dict[str, list[dict[str, Any]]]:
    """The rows by table. The id of a topic is its name."""
    history = small_history(evidence)
    return {
        name: [{"topic_id": row["topic"]} | row for row in getattr(history, name)]
        for name in TABLES
    }


def state_rows(evidence: Evidence) -> list[dict[str, Any]]:
    """The versions of partitions' states, of the controller's znode and of registrations."""
    return [*_partition_states(evidence), *_broker_states(evidence)]


def _broker_states(evidence: Evidence) -> list[dict[str, Any]]:
    """The versions of the controller's znode and of the brokers' registrations."""
    rows = []
    for change in evidence.changes:
        if change.path == CONTROLLER or change.path.startswith(REGISTRATIONS):
            content = json.loads(change.data) if change.data else {}
            rows.append({
                "zxid": change.zxid, "at_ns": round(change.at_s * 1e9), "path": change.path,
                "version": -1 if change.data is None else change.version,
                "controller": content.get("brokerid"), "topic": None, "partition": None,
                "leader_epoch": None, "wall_ms": None,
            })  # fmt: skip
    return rows


def small_history(evidence: Evidence) -> SmallHistory:
    """What the simulation left, as rows of evidence.

    A partition without a leader's log has no rows: `no_progress` reports it.
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
        ]
        + [*_producers(evidence)],
        "assignments": [_assignment(row) for row in evidence.history.assignments],
        "commits": [_commit(row) for row in evidence.history.commits],
        "commit_reads": [
            _commit_read(row)
            for row in evidence.history.commit_reads
            if _is_of_coordinator(evidence, row)
        ],
        "offset_answers": [_answer(answer) for answer in _answers(evidence)],
        "states": state_rows(evidence),
        "polls": [_poll(poll) for poll in evidence.history.polls if _is_judged(evidence, poll)],
        "accesses": [_access(row) for row in evidence.history.questioned],
    }
    for name in ("passes", "logs", "replicas", "indexes"):
        tables[name] = []
    for place, reads in evidence.final.items():
        tables["reads"] += [_read(read, "final", place[1]) for read in reads]
        tables["passes"].append(_pass(evidence, place, reads))
    for place, (reads, end) in evidence.committed.items():
        tables["reads"] += [_read(read, COMMITTED, place[1]) for read in reads]
        tables["passes"].append(_pass_of(evidence, COMMITTED, place, _READ_COMMITTED, end))
    for place, replicas in evidence.replicas.items():
        for replica in replicas:
            rows = _rows(replica)
            here = {"topic": place[0], "partition": place[1], "broker": replica.broker}
            tables["replicas"] += [here | row for row in rows]
            tables["logs"].append(here | _log(replica, rows))
            tables["indexes"] += [here | _NO_BATCH | row for row in replica.indexes]
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


def _answers(evidence: Evidence) -> list[Answer]:
    """Those that are judged. A lookup by timestamp passes over records that a client deleted."""
    return [
        answer
        for answer in evidence.history.answers
        if answer.query not in ("time", "max")
        or (answer.topic, answer.partition) not in evidence.history.deleted_places
    ]


def _derived(evidence: Evidence) -> dict[str, list[dict[str, Any]]]:
    """Rows of derived tables that reference checks of transactions read."""
    over_ns = None if evidence.txns_over_s is None else _ns(evidence.txns_over_s)
    judged = sorted({*evidence.replicas} - leaderless(evidence))
    numbers = {place: p for p, place in enumerate(judged)}
    led = final_leaders(evidence)
    return {
        "settings": [{"txns_over_ns": over_ns, "wall_ns": EPOCH_MS * 1_000_000}],
        "partitions": [
            {"p": p, "topic": place[0], "partition": place[1]}
            | _kept_by(
                evidence.promises,
                _final_log(evidence, place, led.get(place)),
                is_trimmed=place in evidence.history.deleted_places,
            )
            for place, p in numbers.items()
        ],
        "answers": [
            {"p": numbers[answer.topic, answer.partition], "kind": answer.query}
            | _answer(answer)
            for answer in _answers(evidence)
            if (answer.topic, answer.partition) in numbers
        ],
        **interval_tables(evidence, numbers),
    }  # fmt: skip


def _kept_by(promises: Promises, led: Replica | None, *, is_trimmed: bool) -> dict[str, Any]:
    """What is promised of one partition's log, as in the derived table `partitions`."""
    configs = promises.configs
    policy = configs.get("cleanup.policy", "delete")
    kept_ms = configs.get("retention.ms")
    return {
        "log_start": led.log_start if led else 0,
        "active_base": led.segments[-1] if led else -1,
        "ends_ns": _ns(promises.ends_s), "calm_ns": _ns(promises.calm_s),
        "late_ns": _ns(promises.late_s), "gone": False, "trimmed": is_trimmed, "clock_moved": False,
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
        "in_run": True, "has_log": led is not None, "reads_are_log": False, "append_time": False,
        "cut_end": None, "max_start": led.log_start if led else 0,
    }  # fmt: skip


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _final_log(evidence: Evidence, place: Place, leader: int | None) -> Replica | None:
    return next((each for each in evidence.replicas[place] if each.broker == leader), None)


def _sends(number: int, send: Send) -> Iterator[dict[str, Any]]:
    for n, value in enumerate(send.values):
        is_placed = send.outcome == "ok" and send.offset >= 0
        end_s = (
            send.out_of_order_s if send.outcome != "ok" and send.out_of_order_s >= 0 else send.end_s
        )
        yield {
            "client": send.client, "session": send.session, "op": 1_000 * number + n, "acks": -1,
            "topic": send.topic, "partition": send.partition, "partition_intended": send.partition,
            "invoke_ns": _ns(send.begin_s), "complete_ns": _ns(end_s),
            "outcome": send.outcome, "offset": send.offset + n if is_placed else None,
            "node": send.node if send.node >= 0 else None, "attempts": send.attempts,
            "ambiguous": send.attempts > 1, "idempotent": send.producer_id >= 0,
            "producer_id": send.producer_id, "key": send.keys[n] if send.keys else None,
            "value_id": value, "tombstone": value in send.tombstones,
            "timestamp_ms": sent_ms(send), "txn": send.txn, "error": send.error or None,
        }  # fmt: skip


def _read(read: Read, client: str, number: int) -> dict[str, Any]:
    return {
        "client": client, "session": 0, "pass": number, "topic": read.topic,
        "partition": read.partition, "offset": read.offset, "value_id": read.value,
        "leader_epoch": read.leader_epoch, "read_ns": _ns(read.at_s), "key": read.key,
        "intact": True, "timestamp_ms": read.timestamp_ms, "poll": read.poll,
        "position_in_poll": read.position, "generation": None,
    }  # fmt: skip


def _is_judged(evidence: Evidence, poll: Poll) -> bool:
    """Whether a poll says more than its records: it moved its reader, was rejected, or was made
    when nothing disturbed it."""
    calm_s = evidence.promises.calm_s
    return bool(poll.event or poll.error) or 0 < calm_s <= poll.complete_s


def _poll(poll: Poll) -> dict[str, Any]:
    return {
        "client": poll.client, "session": 0, "poll": poll.number, "topic": poll.topic,
        "partition": poll.partition, "invoke_ns": _ns(poll.invoke_s),
        "complete_ns": _ns(poll.complete_s), "event": poll.event,
        "outcome": "ok" if poll.error is None else "fail",
        "error": _OUT_OF_RANGE if poll.error == ErrorCode.OFFSET_OUT_OF_RANGE.name else poll.error,
        "position_before": poll.position_before, "position_after": poll.position_after,
    }  # fmt: skip


def _pass(evidence: Evidence, place: Place, reads: list[Read]) -> dict[str, Any]:
    """The final reads of a partition: they had to reach the highest watermark."""
    marks = [replica.watermark for replica in evidence.replicas.get(place, ())]
    end = max([*marks, *(read.offset + 1 for read in reads)])
    begin = evidence.begins.get(("final", place), 0)
    return _pass_of(evidence, "final", place, "read_uncommitted", end, begin)


def _pass_of(
    evidence: Evidence, client: str, place: Place, isolation: str, end: int, begin: int = 0
) -> dict[str, Any]:
    return {
        "client": client, "session": 0, "pass": place[1], "topic": place[0],
        "partition": place[1], "isolation": isolation, "final": True,
        "complete": (client, place) not in evidence.broken_off,
        "from_offset": begin, "to_offset": end,
        "begin_ns": _ns(evidence.swept_s.get((client, place), 0.0)),
    }  # fmt: skip


def _txn(txn: Txn) -> dict[str, Any]:
    return {
        "client": txn.client, "session": txn.session, "txn": txn.number,
        "transactional_id": txn.transactional_id, "producer_id": txn.producer_id,
        "epoch": txn.epoch, "begin_ns": _ns(txn.begin_s), "commit_invoke_ns": _ns(txn.commit_s),
        "end_ns": _ns(txn.end_s), "outcome": txn.outcome, "error": None,
        "init_invoke_ns": _ns(txn.init_invoke_s), "init_ns": _ns(txn.init_s), "late_end_ns": None,
    }  # fmt: skip


def _client(name: str, **known: Any) -> dict[str, Any]:
    return {"client": name, "session": 0, "kind": "consumer", "isolation": None, "group": None,
            "instance": None, "transactional_id": None, "end_ns": None} | known  # fmt: skip


def _producers(evidence: Evidence) -> Iterator[dict[str, Any]]:
    """The producers without transactions. One with batches that have no outcome goes on until the
    load is over."""
    ends_s = evidence.history.producer_ends_s
    for name in sorted({send.client for send in evidence.history.sends if send.txn is None}):
        end_s = ends_s.get(name, evidence.promises.calm_s)
        yield _client(name, kind="producer", end_ns=_ns(end_s))


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
        "complete_ns": _ns(answer.complete_s), "error": answer.error,
        "leader_epoch": answer.leader_epoch, "api_version": LOOKUP_VERSION,
        "requested_ms": answer.asked_ms, "answered_ms": answer.found_ms,
    }  # fmt: skip


def _access(row: Questioned) -> dict[str, Any]:
    return {
        "client": row.client, "session": 0, "node": row.node, "subject": row.subject,
        "outcome": row.outcome, "error": row.error, "invoke_ns": row.invoke_ns,
        "complete_ns": row.complete_ns,
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
        kind = control_kind(marker)
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
    """A log's row. Without a checkpoint of epochs, they are those of its records."""
    epochs = dict(replica.epochs or {})
    for row in rows if replica.epochs is None else ():
        epochs.setdefault(row["leader_epoch"], row["offset"])
    return {
        "log_start": replica.log_start,
        "log_end": max((row["offset"] + 1 for row in rows), default=replica.log_start),
        "active_base": replica.segments[-1],
        "high_watermark": replica.watermark, "recovery_point": None, "epochs": json.dumps(epochs),
    }  # fmt: skip


def _partition_states(evidence: Evidence) -> Iterator[dict[str, Any]]:
    """Every version of a partition's state, with the replicas that it had then. Partitions without
    any log, as those of deleted topics, are not judged."""
    assigned = [
        (change.zxid, change.path, json.loads(change.data)["partitions"])
        for change in evidence.changes
        if change.data is not None and _ASSIGNMENT.fullmatch(change.path)
    ]
    current: dict[str, dict[str, list[int]]] = {}
    for place, change, state in states_of(evidence.changes):
        while assigned and assigned[0][0] <= change.zxid:
            _, path, partitions = assigned.pop(0)
            current[path] = partitions
        if place not in evidence.replicas:
            continue
        known = current.get(f"/brokers/topics/{place[0]}", {}).get(str(place[1]), BROKERS)
        yield _state(place, change, state, known)


def _state(
    place: Place, change: Change, state: dict[str, Any], replicas: Sequence[int]
) -> dict[str, Any]:
    names = ("leader", "leader_epoch", "controller_epoch")
    return {
        "topic": place[0], "partition": place[1], "path": change.path,
        "zxid": change.zxid, "at_ns": _ns(change.at_s),
        "version": change.version, "isr": json.dumps(state["isr"]),
        "replicas": json.dumps(list(replicas)), "elr": None,
        "wall_ms": EPOCH_MS + round(change.at_s * 1000),
        **{name: state[name] for name in names},
    }  # fmt: skip


def _ns(seconds: float) -> int | None:
    """Nanoseconds; None for a time that never came."""
    return None if seconds < 0 else round(seconds * 1e9)
