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
    """What such a run was asked to be; producers without idempotence have several in flight."""
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
            topics=tuple(TopicSpec(name=one.topic, partitions=2) for one in histories)
        ),
        faults=(FaultSpec(fault="crash", target="b1", at_s=15.0, duration_s=8.0),),
        guarantees=("lost_write", "duplicate", "poll_skip", "replica_divergence"),
        survives=True,
    )


def facts(histories: Sequence[History], **changes: Any) -> RunFacts:
    """What happened in it."""
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
                name=one.topic,
                topic_id=one.logs[0].topic_id,
                partitions=2,
                replication_factor=3,
                config={"min.insync.replicas": "2"} | CONFIG.get(one.kind, {}),
            )
            for one in histories
        ],
        "brokers": list(BROKERS),
    }
    return RunFacts(**(fields | changes))


def tables(histories: Sequence[History]) -> Tables:
    """All tables of a run with these topics, its zxids in the order of time."""
    found: Tables = defaultdict(list)
    for one in histories:
        for name, rows in _of(one).items():
            found[name] += rows
    found["faults"] = [
        {"fault": "crash", "targets": '["b1"]', "proof": "pid 4711 was gone", "acted": True}
        | {"begin_ns": CRASH_NS, "end_ns": HEALED_NS, "healed_ns": HEALED_NS}
    ]
    found["states"].sort(key=lambda row: (row["at_ns"], row["topic"], row["partition"]))
    for number, row in enumerate(found["states"]):
        row["zxid"] = 100 + number
    return {name: [{"run": "r"} | row for row in rows] for name, rows in found.items()}


def _of(one: History) -> Tables:
    found: Tables = defaultdict(list)
    for producer in one.producers:
        found["sends"] += producer.sends
        found["txns"] += producer.txns
        about = {"acks": producer.acks, "idempotent": producer.idempotent}
        for session in range(producer.session + 1):
            whole = session == producer.session
            _client(found, producer.name, session, "producer", whole=whole, **about)
    for reader in one.readers:
        isolation = "read_committed" if reader.committed else "read_uncommitted"
        for session in range(reader.session + 1):
            _client(found, reader.name, session, "consumer", isolation=isolation)
        found["reads"] += reader.reads
        found["polls"] += reader.polls
        found["passes"] += reader.passes
    for member in one.group.members:
        _client(found, member, 0, "group", group=one.group.name, isolation="read_uncommitted")
    _client(found, f"{one.topic}-o", 0, "offsets")
    for isolation in ("read_uncommitted", "read_committed"):
        _client(found, f"{one.topic}-final-{isolation}", 0, "final", isolation=isolation)
    for name in ("reads", "polls", "assignments", "commits", "commit_reads"):
        found[name] += getattr(one.group, name)
    found["offset_answers"] += one.answers
    for log in one.logs:
        _disks(found, one, log)
    return found


def _client(
    found: Tables, name: str, session: int, kind: str, *, whole: bool = True, **reported: Any
) -> None:
    library = {"library": "kafka-python", "version": "3.0", "boot_id": "boot", "pid": 4000}
    found["clients"].append({"client": name, "session": session, "kind": kind} | library | reported)
    journal = f"journal/{name}.jsonl"
    found["manifest"].append({"file": journal, "kind": "journal", "ended_properly": whole})
    if not whole:
        act = {"act": "kill client", "subject": name, "outcome": "ok"}
        found["admin_ops"].append(act | {"invoke_ns": BEGIN_NS, "complete_ns": BEGIN_NS})


def _disks(found: Tables, one: History, log: Log) -> None:
    """Final passes, each under another leader, and what is on every disk after them."""
    held = {broker: _cleaned(one, log) for broker in BROKERS}
    starts = {broker: _start(one, log) for broker in BROKERS}
    first = log.leader
    for number in range(3):
        leader = BROKERS[(first - 1 + number) % 3]
        at_ns = END_NS + number * ROUND_NS
        if number:
            log.leader, log.epoch = leader, log.epoch + 1
            log.epochs = {e: at for e, at in log.epochs.items() if at < log.end}
            log.epochs[log.epoch] = log.end
            log.advance(at_ns)
        for committed in (False, True) if one.kind in TRANSACTIONAL else (False,):
            low = starts[leader]
            _pass(found, one, log, held[leader], at_ns + S, number, (leader, low), committed)
        at_ns += 8 * S
        for broker in BROKERS:
            _views(found, log, broker, at_ns)
        found["offset_answers"].append(
            log.place
            | {"node": leader, "invoke_ns": at_ns, "complete_ns": at_ns + MS, "api_version": 7}
            | {"query": "latest", "offset": log.high, "leader_epoch": log.epoch}
        )
    for broker in BROKERS:
        _disk(found, log, broker, held[broker], starts[broker])
    found["states"] += log.states


def _start(one: History, log: Log) -> int:
    """Replicas delete on their own: some have more left than others."""
    bases = [entry.batch for entry in log.entries if entry.offset < log.high]
    if one.kind == "retained" and bases and one.random.random() < 0.3:
        old_ns = END_NS - RETENTION_NS
        gone = [entry for entry in log.entries if entry.at_ns < old_ns]
        return max([log.start, *(entry.batch for entry in gone)])
    return log.start


def _active(log: Log) -> int:
    return max(log.start, (log.end - 1) // SEGMENT * SEGMENT)


def _cleaned(one: History, log: Log) -> list[Entry]:
    """What a broker's cleaner left: the active segment and what is not stable yet, markers, the
    last of every key that was not aborted, some others."""
    if one.kind not in COMPACTED:
        return log.entries
    aborted, reach = log.aborted(), min(_active(log), log.stable())
    clean = [entry for entry in log.entries if entry.offset < reach and entry.control is None]
    last = {entry.key: entry.offset for entry in clean if entry.offset not in aborted}
    gone = {
        entry.offset
        for entry in clean
        if entry.offset != last.get(entry.key) and one.random.random() < 0.7
    }
    return [entry for entry in log.entries if entry.offset not in gone]


def _pass(
    found: Tables,
    one: History,
    log: Log,
    held: Iterable[Entry],
    at_ns: int,
    number: int,
    led: tuple[int, int],
    committed: bool,
) -> None:
    isolation = "read_committed" if committed else "read_uncommitted"
    who = {"client": f"{one.topic}-final-{isolation}", "session": 0}
    who["pass"] = log.partition * 10 + number
    shown = {entry.offset for entry in log.shown(led[1], log.high, committed=committed)}
    given = [entry for entry in held if entry.offset in shown]
    for n, entry in enumerate(given):
        where = {"poll": 1000 * who["pass"] + n // 50, "position_in_poll": n % 50}
        found["reads"].append(read(entry, log, at_ns + n, **who, **where))
    found["passes"].append(
        log.place
        | who
        | {"isolation": isolation, "final": True, "complete": True, "leader": led[0]}
        | {"from_offset": led[1], "to_offset": log.stable() if committed else log.high}
        | {"begin_ns": at_ns, "end_ns": at_ns + 2 * S}
    )


def _views(found: Tables, log: Log, broker: int, at_ns: int) -> None:
    labels = json.dumps({"topic": log.topic, "partition": log.partition})
    fields = {"metadata_leader": log.leader, "metadata_leader_epoch": log.epoch}
    found["samples"] += [
        {"at_ns": at_ns, "source": f"b{broker}", "labels": labels}
        | {"metric": metric, "value": float(value)}
        for metric, value in fields.items()
    ]


def _disk(found: Tables, log: Log, broker: int, held: Iterable[Entry], start: int) -> None:
    here = log.place | {"broker": broker}
    found["logs"].append(
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
        found["replicas"].append(
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
        found["indexes"].append(here | at | there | {"kind": "offset", "offset": entry.offset})
