"""The evidence of generated histories: many topics make one run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from tests.harness.verify.histories.history import (
    COMPACTED,
    RETENTION_NS,
    TRANSACTIONAL,
    History,
)
from tests.harness.verify.histories.log import (
    BEGIN_NS,
    BROKERS,
    CRASH_NS,
    END_NS,
    HEALED_NS,
    MS,
    Entry,
    Log,
    Row,
    S,
)
from tests.harness.verify.histories.readers import read
from urteil.harness.scenario import (
    ClusterSpec,
    FaultSpec,
    Phase,
    RunFacts,
    Scenario,
    TopicFact,
    TopicSpec,
    WorkloadSpec,
)

Tables = dict[str, list[Row]]
SEGMENT = 64
ROUND_NS = 10 * S
ENDS_NS = END_NS + 60 * S
CONFIG = {
    **{kind: {"cleanup.policy": "compact"} for kind in COMPACTED},
    "retained": {"retention.ms": str(RETENTION_NS // MS)},
    "lax": {"min.insync.replicas": "1"},
}


def scenario(histories: Sequence[History]) -> Scenario:
    """The scenario of such a run; producers without idempotence have several requests in flight."""
    return Scenario(
        name="generated",
        cluster=ClusterSpec(
            config={
                "min.insync.replicas": "2",
                "zookeeper.session.timeout.ms": "1000",
                "replica.lag.time.max.ms": "1000",
            }
        ),
        workload=WorkloadSpec(
            topics=tuple(TopicSpec(name=history.topic, partitions=2) for history in histories)
        ),
        faults=(FaultSpec(fault="crash", target="b1", at_s=15.0, duration_s=8.0),),
        guarantees=("lost_write", "duplicate", "poll_skip", "replica_divergence"),
        survives=True,
    )


def facts(histories: Sequence[History], **changes: Any) -> RunFacts:
    """The facts of such a run."""
    fields: dict[str, Any] = {
        "run": "r",
        "seed": 7,
        "scenario": "generated",
        "target": "urteil",
        "runtime": "process",
        "boot_id": "boot",
        "command": "urteil run generated --seed 7",
        "phases": [
            Phase(name="before", begin_ns=BEGIN_NS, end_ns=CRASH_NS),
            Phase(name="during", begin_ns=CRASH_NS, end_ns=HEALED_NS),
            Phase(name="after", begin_ns=HEALED_NS, end_ns=END_NS),
            Phase(name="final", begin_ns=END_NS, end_ns=ENDS_NS),
        ],
        "topics": [
            TopicFact(
                name=history.topic,
                topic_id=history.logs[0].topic_id,
                partitions=2,
                replication_factor=3,
                config={"min.insync.replicas": "2"} | CONFIG.get(history.kind, {}),
            )
            for history in histories
        ],
        "brokers": list(BROKERS),
    }
    return RunFacts(**(fields | changes))


def tables(histories: Sequence[History]) -> Tables:
    """All tables of a run with these topics, its zxids in the order of time."""
    tables: Tables = defaultdict(list)
    for history in histories:
        for name, rows in _of(history).items():
            tables[name] += rows
    tables["faults"] = [
        {"fault": "crash", "targets": '["b1"]', "proof": "pid 4711 was gone", "acted": True}
        | {"begin_ns": CRASH_NS, "end_ns": HEALED_NS, "healed_ns": HEALED_NS}
    ]
    tables["states"].sort(key=lambda row: (row["at_ns"], row["topic"], row["partition"]))
    for number, row in enumerate(tables["states"]):
        row["zxid"] = 100 + number
    return {name: [{"run": "r"} | row for row in rows] for name, rows in tables.items()}


def _of(history: History) -> Tables:
    tables: Tables = defaultdict(list)
    for producer in history.producers:
        tables["sends"] += producer.sends
        tables["txns"] += producer.txns
        about = {"acks": producer.acks, "idempotent": producer.idempotent}
        for session in range(producer.session + 1):
            is_last = session == producer.session
            _client(tables, producer.name, session, "producer", is_complete=is_last, **about)
    for reader in history.readers:
        isolation = "read_committed" if reader.committed else "read_uncommitted"
        for session in range(reader.session + 1):
            _client(tables, reader.name, session, "consumer", isolation=isolation)
        tables["reads"] += reader.reads
        tables["polls"] += reader.polls
        tables["passes"] += reader.passes
    for member in history.group.members:
        _client(tables, member, 0, "group", group=history.group.name, isolation="read_uncommitted")
    _client(tables, f"{history.topic}-o", 0, "offsets")
    for isolation in ("read_uncommitted", "read_committed"):
        _client(tables, f"{history.topic}-final-{isolation}", 0, "final", isolation=isolation)
    for name in ("reads", "polls", "assignments", "commits", "commit_reads"):
        tables[name] += getattr(history.group, name)
    tables["offset_answers"] += history.answers
    for log in history.logs:
        _disks(tables, history, log)
    return tables


def _client(
    tables: Tables, name: str, session: int, kind: str, *, is_complete: bool = True, **reported: Any
) -> None:
    library = {"library": "kafka-python", "version": "3.0", "boot_id": "boot", "pid": 4000}
    tables["clients"].append(
        {"client": name, "session": session, "kind": kind} | library | reported
    )
    journal = f"journal/{name}.jsonl"
    tables["manifest"].append({"file": journal, "kind": "journal", "ended_properly": is_complete})
    if not is_complete:
        act = {"act": "kill client", "subject": name, "outcome": "ok"}
        tables["admin_ops"].append(act | {"invoke_ns": BEGIN_NS, "complete_ns": BEGIN_NS})


def _disks(tables: Tables, history: History, log: Log) -> None:
    """Final passes, each under another leader, and the content of every disk after them."""
    held = {broker: _cleaned(history, log) for broker in BROKERS}
    starts = {broker: _start(history, log) for broker in BROKERS}
    first = log.leader
    for number in range(3):
        leader = BROKERS[(first - 1 + number) % 3]
        at_ns = END_NS + number * ROUND_NS
        if number:
            log.leader, log.epoch = leader, log.epoch + 1
            log.epochs = {e: at for e, at in log.epochs.items() if at < log.end}
            log.epochs[log.epoch] = log.end
            log.advance(at_ns)
        for committed in (False, True) if history.kind in TRANSACTIONAL else (False,):
            low = starts[leader]
            _pass(tables, history, log, held[leader], at_ns + S, number, (leader, low), committed)
        at_ns += 8 * S
        for broker in BROKERS:
            _views(tables, log, broker, at_ns)
        tables["offset_answers"].append(
            log.place
            | {"node": leader, "invoke_ns": at_ns, "complete_ns": at_ns + MS, "api_version": 7}
            | {"query": "latest", "offset": log.high, "leader_epoch": log.epoch}
        )
    for broker in BROKERS:
        _disk(tables, log, broker, held[broker], starts[broker])
    tables["states"] += log.states


def _start(history: History, log: Log) -> int:
    """Replicas delete on their own: some have more left than others."""
    bases = [entry.batch for entry in log.entries if entry.offset < log.high]
    if history.kind == "retained" and bases and history.random.random() < 0.3:
        old_ns = END_NS - RETENTION_NS
        gone = [entry for entry in log.entries if entry.at_ns < old_ns]
        return max([log.start, *(entry.batch for entry in gone)])
    return log.start


def _active(log: Log) -> int:
    return max(log.start, (log.end - 1) // SEGMENT * SEGMENT)


def _cleaned(history: History, log: Log) -> list[Entry]:
    """The records that a broker's cleaner kept: the active segment and records beyond the last
    stable offset, markers, the last value of every key that was not aborted, and some others."""
    if history.kind not in COMPACTED:
        return log.entries
    aborted, reach = log.aborted(), min(_active(log), log.stable())
    clean = [entry for entry in log.entries if entry.offset < reach and entry.control is None]
    last = {entry.key: entry.offset for entry in clean if entry.offset not in aborted}
    gone = {
        entry.offset
        for entry in clean
        if entry.offset != last.get(entry.key) and history.random.random() < 0.7
    }
    return [entry for entry in log.entries if entry.offset not in gone]


def _pass(
    tables: Tables,
    history: History,
    log: Log,
    held: Iterable[Entry],
    at_ns: int,
    number: int,
    led: tuple[int, int],
    committed: bool,
) -> None:
    isolation = "read_committed" if committed else "read_uncommitted"
    session = {"client": f"{history.topic}-final-{isolation}", "session": 0}
    session["pass"] = log.partition * 10 + number
    shown = {entry.offset for entry in log.shown(led[1], log.high, committed=committed)}
    delivered = [entry for entry in held if entry.offset in shown]
    for n, entry in enumerate(delivered):
        where = {"poll": 1000 * session["pass"] + n // 50, "position_in_poll": n % 50}
        tables["reads"].append(read(entry, log, at_ns + n, **session, **where))
    tables["passes"].append(
        log.place
        | session
        | {"isolation": isolation, "final": True, "complete": True, "leader": led[0]}
        | {"from_offset": led[1], "to_offset": log.stable() if committed else log.high}
        | {"begin_ns": at_ns, "end_ns": at_ns + 2 * S}
    )


def _views(tables: Tables, log: Log, broker: int, at_ns: int) -> None:
    labels = json.dumps({"topic": log.topic, "partition": log.partition})
    fields = {"metadata_leader": log.leader, "metadata_leader_epoch": log.epoch}
    tables["samples"] += [
        {"at_ns": at_ns, "source": f"b{broker}", "labels": labels}
        | {"metric": metric, "value": float(value)}
        for metric, value in fields.items()
    ]


def _disk(tables: Tables, log: Log, broker: int, held: Iterable[Entry], start: int) -> None:
    here = log.place | {"broker": broker}
    tables["logs"].append(
        here
        | {"log_start": start, "log_end": log.end, "high_watermark": log.high}
        | {"recovery_point": log.end, "active_base": _active(log)}
        | {"epochs": json.dumps({str(epoch): at for epoch, at in log.epochs.items()})}
    )
    batches: dict[int, Entry] = {}
    for entry in held:
        if entry.offset < start:
            continue
        batches.setdefault(entry.batch, entry)
        names = ("offset", "key", "value_id", "producer_id", "producer_epoch", "sequence")
        names = (*names, "control", "transactional", "timestamp_ms")
        tables["replicas"].append(
            here
            | {name: getattr(entry, name) for name in names}
            | {"segment_base": entry.batch // SEGMENT * SEGMENT, "batch_base": entry.batch}
            | {
                "batch_bytes": 480,
                "batch_crc": Random(f"{log.topic}/{entry.batch}").getrandbits(32),
            }
            | {"leader_epoch": entry.epoch, "intact": entry.control is None or None}
        )
    for n, entry in enumerate(list(batches.values())[::8]):
        at = {"segment_base": entry.batch // SEGMENT * SEGMENT, "entry": n, "position": 480 * n}
        there = {"there": "batch", "there_base": entry.batch, "there_last": entry.offset}
        tables["indexes"].append(here | at | there | {"kind": "offset", "offset": entry.offset})
