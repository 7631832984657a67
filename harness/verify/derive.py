"""Small tables derived from the small evidence, once, for every check and engine.

Ranges, ISRs and epochs come as JSON texts that engines parse differently; here they become plain
columns. Nothing here grows with the load: cost follows partitions, epochs, passes and faults.
Flags are 0 or 1, so that both engines can sum them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from urteil.harness.scenario import RunFacts, Scenario, TopicFact
from urteil.harness.verify import evidence
from urteil.harness.verify.administered import killed_clients, lowest_min_isr, unclean_asked
from urteil.harness.verify.cycles import cycle_rows
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.harm import Harm, harms, losses, with_losses
from urteil.harness.verify.lineage import agreed_end
from urteil.harness.verify.promises import settled
from urteil.harness.verify.timeline import FOREVER_NS, NO_OFFSET, Span, floors, spans_of
from urteil.harness.verify.transactions import over_ns, stands, txn_rows
from urteil.harness.verify.views import answers, views

MASK_BITS = 60
LOG, ENDS = "urteil.log", "urteil.ends"
"""Of a topic whose history was recorded elsewhere: `reads` says that what anybody read was visible,
there being no log; `unknown` that nobody told the ends which its final passes had to reach."""

_TYPES = {"s": pa.string(), "i": pa.int32(), "l": pa.int64(), "d": pa.float64()}


def _schema(columns: str) -> pa.Schema:
    pairs = (column.split(":") for column in columns.split())
    return pa.schema([pa.field(name, _TYPES[kind]) for name, kind in pairs])


DERIVED: dict[str, pa.Schema] = {
    "parts": _schema(
        "p:l topic_id:s topic:s partition:i ours:i copies:i final_leader:i has_log:i log_start:l "
        "log_end:l committed_end:l seen_end:l replication:i min_isr:i unclean_on:i unclean_asked:i "
        "foreign_on:i compacted:i unclean_floor:l last_epoch_ns:l agreed_end:l gone:i "
        "lost_floor:l lost_ns:l"
        " read_log:i ends_told:i delete_retention_ns:l min_lag_ns:l "
        "max_lag_ns:l retention_ns:l retention_told:i retention_bytes:l append_time:i "
        "clock_moved:i trimmed:i max_start:l active_base:l ends_ns:l calm_ns:l"
    ),
    "views": _schema("p:l broker:i at_ns:l leader:i leader_epoch:i"),
    "answers": _schema(
        "p:l node:i invoke_ns:l complete_ns:l api_version:i kind:s query:s asked_ms:l offset:l "
        "leader_epoch:i error:s"
    ),
    "cover": _schema("p:l lo:l hi:l copies:i mask_ru:l mask_rc:l"),
    "pass_bits": _schema("client:s session:i pass:l p:l bit:l"),
    "floors": _schema("p:l from_ns:l to_ns:l any_floor:l unclean_floor:l lost_floor:l"),
    "spans": _schema(
        "p:l version:i begin_ns:l end_ns:l leader:i leader_epoch:i controller_epoch:i isr:s "
        "isr_size:i prev_version:i prev_leader:i prev_leader_epoch:i prev_controller_epoch:i "
        "prev_isr:s path:s blind:i"
    ),
    "epochs": _schema("p:l broker:i epoch:i start:l log_start:l"),
    "logs_p": _schema("p:l broker:i log_start:l log_end:l high_watermark:l in_isr:i"),
    "windows": _schema("n:i begin_ns:l end_ns:l"),
    "damaged": _schema("client:s"),
    "killed": _schema("client:s"),
    "settings": _schema("in_flight:i wall_ns:l commits_before:i promise:s txns_over_ns:l"),
    "txn_p": _schema(
        "client:s session:i txn:l tid:s begin_ns:l commit_ns:l end_ns:l outcome:s fate:s "
        "fenced_ns:l late:i"
    ),
    "stands": _schema("grp:s p:l position:l asked_ns:l"),
    "cycles": _schema("kind:s p:l off:l at_ns:l until_ns:l n:i txns:s"),
    "graph": _schema("kind:s edges:l"),
    "commit_breaks": _schema(
        "kind:s p:l grp:s client:s session:i at_ns:l until_ns:l answered:l acknowledged:l deposed:i"
    ),
    "trials": _schema("n:i p:l fault:s targets:s begin_ns:l from_ns:l to_ns:l"),
    "recoveries": _schema("n:i fault:s targets:s healed_ns:l recovery_s:d deadline_s:d judged:i"),
}
"""Derived table to its columns. `p` is the ordinal of (topic_id, partition) everywhere."""


@dataclass(slots=True)
class Derived:
    """The derived tables, and what judging needs to know beside them.

    `damaged` are clients whose journal is missing or cut, though nobody killed them on purpose.
    `short` names the final passes that stopped before their end, `unasked` the replicas that led
    none of them.
    """

    tables: dict[str, list[Row]]
    damaged: frozenset[str] = frozenset()
    short: list[str] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    faults: list[Row] = field(default_factory=list)
    libraries: dict[str, str] = field(default_factory=dict)

    @property
    def parts(self) -> list[Row]:
        return self.tables["parts"]

    def write(self, folder: Path) -> None:
        """Write every derived table as a folder of Parquet under `folder`."""
        for name, schema in DERIVED.items():
            evidence.write_rows(folder / name, schema, self.tables.get(name, []))


def derive(
    run_dir: Path, scenario: Scenario, facts: RunFacts, damaged: frozenset[str] = frozenset()
) -> Derived:
    """Read the small evidence of `run_dir` and derive everything that checks share.

    `damaged` are clients whose journal is not whole: their passes prove nothing.
    """
    small = {
        name: evidence.rows(run_dir, name)
        for name in ("states", "logs", "passes", "faults", "clients")
    }
    small["states"] = [row for row in small["states"] if None not in (row["zxid"], row["at_ns"])]
    small["states"] = _until_the_end(small["states"], facts)
    small["faults"] = [row for row in small["faults"] if row["begin_ns"] is not None]
    for fault in small["faults"]:
        fault["acted"] = bool(fault["proof"]) if fault["acted"] is None else fault["acted"]
    numbers = _numbers(facts.topics, small)
    spans = spans_of(small["states"], numbers)
    logs = _by_partition(_whole_logs(run_dir, small["logs"]), numbers)
    passes = _by_partition([row for row in small["passes"] if row["final"]], numbers)
    settings = {topic.topic_id: topic for topic in facts.topics}
    gone = _gone(small["states"])
    ops = evidence.rows(run_dir, "admin_ops")
    tables: dict[str, list[Row]] = {name: [] for name in DERIVED}
    short: list[str] = []
    unasked: list[str] = []
    for key, p in numbers.items():
        topic = settings.get(key[0])
        _name_leaders(passes.get(p, []), spans.get(p, []))
        whole, stopped = _sort_passes(passes.get(p, []), damaged)
        short += [f"{row['topic']}-{row['partition']}" for row in stopped]
        if topic is not None:
            unasked += _unasked(topic, key[1], logs.get(p, []), whole)
        bits = {id(row): 1 << index for index, row in enumerate(whole[:MASK_BITS])}
        part = _part(key, p, topic, scenario, spans.get(p, []), logs.get(p, []), whole)
        part |= {"gone": int(key in gone)} | _administered(part, ops)
        hurt = harms(small["faults"], part["topic"], key[1])
        _add_floors(tables, part, spans.get(p, []), logs.get(p, []), hurt)
        part |= settled(topic, scenario, facts, small["faults"], ops)
        part |= _segments(logs.get(p, []), part["final_leader"])
        tables["parts"].append(part)
        tables["pass_bits"] += [
            {"client": row["client"], "session": row["session"], "pass": row["pass"], "p": p}
            | {"bit": bits[id(row)]}
            for row in whole[:MASK_BITS]
        ]
        tables["cover"] += _cover(p, logs.get(p, []), whole[:MASK_BITS], bits)
        tables["spans"] += [
            {"p": p, "blind": int(_blind(span, small["faults"]))} | span.row()
            for span in spans.get(p, [])
        ]
        _add_logs(tables, part, spans.get(p, []), logs.get(p, []))
        if not facts.healed:
            part["agreed_end"] = _agreed_end(logs.get(p, []), part["final_leader"])
    load = scenario.workload
    before = int(load.options.get("commit") == "before")
    tables["views"] = views(
        run_dir, numbers, {topic.name: topic.topic_id for topic in facts.topics}
    )
    tables["answers"] = answers(run_dir, numbers)
    tables["txn_p"] = txn_rows(run_dir, small["faults"])
    tables["stands"] = stands(run_dir, tables["txn_p"], numbers)
    tables["cycles"], tables["graph"] = cycle_rows(run_dir, tables["txn_p"], numbers)
    tables["settings"] = [
        {"in_flight": load.in_flight, "commits_before": before}
        | {"txns_over_ns": over_ns(scenario, tables["txn_p"], small["faults"])}
        | {"promise": load.options.get("promise", "at-least-once")}
        | {"wall_ns": _wall_ns(small["states"])}
    ]
    tables["damaged"] = [{"client": name} for name in sorted(damaged)]
    tables["killed"] = [{"client": name} for name in sorted(damaged | killed_clients(ops))]
    return Derived(
        tables=tables,
        damaged=damaged,
        short=sorted(set(short)),
        unasked=unasked,
        faults=small["faults"],
        libraries={
            str(row["client"]): f"{row['library']} {row['version']}" for row in small["clients"]
        },
    )


def _whole_logs(run_dir: Path, logs: list[Row]) -> list[Row]:
    """Logs that were read to their end, each once: what lies behind damage on a disk is not known
    to miss."""
    cut = {
        (Path(row["file"]).parts[1], Path(row["file"]).name)
        for row in evidence.rows(run_dir, "manifest")
        if not row["ended_properly"] and "/data/" in str(row["file"])
    }
    once = {(row["broker"], row["topic_id"], row["partition"]): row for row in reversed(logs)}
    return [
        row
        for row in reversed(once.values())
        if (f"b{row['broker']}", f"{row['topic']}-{row['partition']}") not in cut
    ]


def _wall_ns(states: list[Row]) -> int | None:
    """Wall clock minus CLOCK_MONOTONIC, as the states tell it."""
    known = (row for row in states if row["wall_ms"] is not None and row["at_ns"] is not None)
    first = next(known, None)
    return None if first is None else int(first["wall_ms"] * 1_000_000 - first["at_ns"])


def _until_the_end(states: list[Row], facts: RunFacts) -> list[Row]:
    """States of the run itself; what the brokers' final shutdown wrote is no evidence."""
    end_ns = max((phase.end_ns for phase in facts.phases), default=FOREVER_NS)
    return [row for row in states if (row["at_ns"] or 0) <= end_ns]


def _gone(states: list[Row]) -> set[tuple[str, int]]:
    """Partitions whose topic was deleted, for all that ZooKeeper says."""
    last = {
        (row["topic_id"], row["partition"]): row["version"]
        for row in sorted(states, key=lambda row: int(row["zxid"]))
        if row["partition"] is not None
    }
    return {key for key, version in last.items() if version == -1}


def _numbers(
    topics: Sequence[TopicFact], small: dict[str, list[Row]]
) -> dict[tuple[str, int], int]:
    keys = {(topic.topic_id, n) for topic in topics for n in range(topic.partitions)}
    for table in ("logs", "passes", "states"):
        keys |= {
            (row["topic_id"], row["partition"])
            for row in small[table]
            if row["topic_id"] is not None and (row["partition"] or 0) >= 0
            if row["partition"] is not None
        }
    return {key: p for p, key in enumerate(sorted(keys))}


def _by_partition(
    table: Iterable[Row], numbers: dict[tuple[str, int], int]
) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in table:
        p = numbers.get((row["topic_id"], row["partition"]))
        if p is not None:
            found[p].append(row)
    return found


def _sort_passes(passes: list[Row], damaged: frozenset[str]) -> tuple[list[Row], list[Row]]:
    """Final passes that prove what they covered, and those that stopped short."""
    whole = [row for row in passes if row["complete"] and row["client"] not in damaged]
    return whole, [row for row in passes if not row["complete"]]


def _name_leaders(passes: list[Row], spans: list[Span]) -> None:
    """Who led while a pass read, by ZooKeeper's state, where the pass does not say."""
    for row in passes:
        if row["leader"] is None and row["begin_ns"] is not None and row["end_ns"] is not None:
            over = [s for s in spans if s.begin_ns < row["end_ns"] and row["begin_ns"] < s.end_ns]
            led = {span.leader for span in over}
            row["leader"] = led.pop() if len(led) == 1 else None


def _unasked(topic: TopicFact, partition: int, logs: list[Row], passes: list[Row]) -> list[str]:
    asked = {row["leader"] for row in passes}
    return [
        f"broker {row['broker']} of {topic.name}-{partition}"
        for row in logs
        if row["broker"] not in asked
    ]


def _administered(part: Row, ops: list[Row]) -> Row:
    """What acts of administrators change of a partition's promises."""
    asked = unclean_asked(ops, part["topic"], part["partition"])
    return {
        "unclean_asked": int(asked),
        "unclean_on": int(part["unclean_on"] or asked),
        "min_isr": lowest_min_isr(ops, part["topic"], part["min_isr"]),
    }


LAB_DEFAULTS = {
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
}
"""What the lab gives every broker (harness/targets/base.py) and checks depend on."""


def setting(topic: TopicFact | None, scenario: Scenario, name: str) -> str:
    """A topic's setting: its own, else the brokers', else the lab's default."""
    own = {} if topic is None else topic.config
    if name == "min.insync.replicas" and scenario.cluster.brokers < 3:
        return own.get(name, scenario.cluster.config.get(name, "1"))
    return own.get(name, scenario.cluster.config.get(name, LAB_DEFAULTS[name]))


def _part(
    key: tuple[str, int],
    p: int,
    topic: TopicFact | None,
    scenario: Scenario,
    spans: list[Span],
    logs: list[Row],
    passes: list[Row],
) -> Row:
    leader = _final_leader(spans, passes, logs)
    led = next((row for row in logs if row["broker"] == leader), None)
    replication = topic.replication_factor if topic else len(logs)
    seen_end = max((row["to_offset"] for row in passes), default=None)
    marks: list[int] = [mark for mark in (seen_end, _high(led)) if mark is not None]
    return {
        "p": p,
        "topic_id": key[0],
        "topic": topic.name if topic else _topic_name(logs, passes, spans),
        "partition": key[1],
        "ours": int(topic is not None),
        "copies": int(topic is not None and topic.copies),
        "final_leader": leader,
        "has_log": int(led is not None),
        "log_start": (led["log_start"] or 0) if led else _highest_start(logs),
        "log_end": led["log_end"] if led else None,
        "committed_end": max(marks, default=0),
        "seen_end": seen_end,
        "replication": replication,
        "min_isr": min(int(setting(topic, scenario, "min.insync.replicas")), replication),
        "unclean_on": int(
            "unclean_election" in scenario.permits
            or setting(topic, scenario, "unclean.leader.election.enable") == "true"
        ),
        "foreign_on": int("foreign_records" in scenario.permits),
        "read_log": int(topic is not None and topic.config.get(LOG) == "reads"),
        "ends_told": int(topic is None or topic.config.get(ENDS) != "unknown"),
        "compacted": int("compact" in _cleanup(topic, scenario, spans)),
        "unclean_floor": NO_OFFSET,
        "last_epoch_ns": None,
        "agreed_end": NO_OFFSET,
        "lost_floor": None,
        "lost_ns": None,
    }


def _segments(logs: list[Row], leader: int | None) -> Row:
    """The highest log start, and where the final leader's active segment begins.

    -1 where its log does not say: then the records on disk have to.
    """
    led = next((row for row in logs if row["broker"] == leader), None)
    active = None if led is None else led["active_base"]
    return {"max_start": _highest_start(logs), "active_base": -1 if active is None else active}


def _highest_start(logs: list[Row]) -> int:
    """Without the final leader's log, below this some replica has deleted."""
    return max((row["log_start"] or 0 for row in logs), default=0)


def _high(log: Row | None) -> int | None:
    return None if log is None else log["high_watermark"]


def _cleanup(topic: TopicFact | None, scenario: Scenario, spans: list[Span]) -> str:
    if topic is None:
        return "compact"
    broker_wide = scenario.cluster.config.get("log.cleanup.policy", "delete")
    return topic.config.get("cleanup.policy", broker_wide)


def _topic_name(logs: list[Row], passes: list[Row], spans: list[Span]) -> str:
    names = [row["topic"] for row in (*logs, *passes)] + [span.topic for span in spans]
    return next((str(name) for name in names if name), "?")


def _final_leader(spans: list[Span], passes: list[Row], logs: list[Row]) -> int | None:
    """Who led last: by ZooKeeper, else by the last final pass, else by the one log there is.

    None when there is no log of that broker: another one's may lack what it never replicated.
    """
    have = {row["broker"] for row in logs}
    told = [span.leader for span in spans if span.leader >= 0]
    if not told:
        asked = sorted(passes, key=lambda row: int(row["end_ns"] or 0))
        told = [row["leader"] for row in asked if row["leader"] is not None]
    if not told and len(have) == 1:
        told = list(have)
    return int(told[-1]) if told and told[-1] in have else None


def _epoch_starts(row: Row) -> dict[int, int]:
    return {int(epoch): int(start) for epoch, start in json.loads(row["epochs"] or "{}").items()}


def _add_floors(
    tables: dict[str, list[Row]],
    part: Row,
    spans: list[Span],
    logs: list[Row],
    hurt: list[Harm],
) -> None:
    leader = next((row for row in logs if row["broker"] == part["final_leader"]), None)
    starts = _epoch_starts(leader) if leader else {}
    lost = losses(spans, hurt)
    found = with_losses(floors(spans, starts, leader["log_end"] if leader else 0), lost)
    part["unclean_floor"] = min((floor.unclean_floor for floor in found), default=NO_OFFSET)
    begun = [span.begin_ns for span in spans if span.begins_epoch]
    part["last_epoch_ns"] = max(begun[1:], default=None)
    part["lost_floor"] = min((one.floor for one in lost), default=None)
    part["lost_ns"] = max((one.until_ns for one in lost), default=None)
    tables["floors"] += [{"p": part["p"]} | floor.row() for floor in found]


def _cover(p: int, logs: list[Row], passes: list[Row], bits: dict[int, int]) -> list[Row]:
    """Disjoint ranges of offsets with how many logs and which final passes cover each."""
    ranges: list[tuple[int, int, int, int, int]] = [
        (row["log_start"] or 0, row["log_end"] or 0, 1, 0, 0) for row in logs
    ]
    for row in passes:
        committed = row["isolation"] == "read_committed"
        bit = bits[id(row)]
        reach = (row["from_offset"] or 0, row["to_offset"] or 0)
        ranges.append((*reach, 0, 0 if committed else bit, bit if committed else 0))
    edges = sorted({edge for low, high, *_ in ranges for edge in (low, high)})
    cover = []
    for low, high in pairwise(edges):
        over = [entry for entry in ranges if entry[0] <= low and high <= entry[1]]
        copies, mask_ru, mask_rc = (sum(entry[i] for entry in over) for i in (2, 3, 4))
        cover.append(
            {"p": p, "lo": low, "hi": high, "copies": copies}
            | {"mask_ru": mask_ru, "mask_rc": mask_rc}
        )
    return cover


def _add_logs(tables: dict[str, list[Row]], part: Row, spans: list[Span], logs: list[Row]) -> None:
    final_isr = next((span.isr for span in reversed(spans) if span.leader >= 0), ())
    for row in logs:
        tables["logs_p"].append(
            {"p": part["p"], "broker": row["broker"], "log_start": row["log_start"]}
            | {"log_end": row["log_end"], "high_watermark": row["high_watermark"]}
            | {"in_isr": int(row["broker"] in final_isr)}
        )
        tables["epochs"] += [
            {"p": part["p"], "broker": row["broker"], "epoch": epoch, "start": start}
            | {"log_start": row["log_start"] or 0}
            for epoch, start in _epoch_starts(row).items()
        ]


def _agreed_end(logs: list[Row], leader: int | None) -> int:
    """From where on replicas may differ in a cluster that was never healed: one that could not ask
    the leader has not truncated yet."""
    led = [row for row in logs if row["broker"] == leader]
    ends = [
        agreed_end(_epoch_starts(one), one["log_end"] or 0, _epoch_starts(row), row["log_end"] or 0)
        for one in led
        for row in logs
    ]
    return min(ends, default=NO_OFFSET)


def _blind(span: Span, faults: list[Row]) -> bool:
    """Whether a fault could keep ZooKeeper's state from the leader: it is paused, or links are cut.

    Such a leader keeps the ISR it last knew, and is right to.
    """
    for fault in faults:
        end_ns = fault["healed_ns"] or fault["end_ns"] or FOREVER_NS
        if fault["begin_ns"] >= span.end_ns or end_ns <= span.begin_ns:
            continue
        targets = targets_of(fault)
        if any("->" in target for target in targets) or f"b{span.leader}" in targets:
            return True
    return False
