"""The small evidence of a run, read once and sorted by partition."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from urteil.harness.scenario import IMPORTED, RunFacts, TopicFact
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.state_spans import Span, spans_of
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import FOREVER_NS

Key = tuple[str, int]
"""Topic id and partition."""


@dataclass(slots=True, kw_only=True)
class SmallEvidence:
    """The evidence that does not grow with the load; `numbers` maps each partition to its ordinal
    `p`.

    `spans`, `logs` and `passes` are by `p`. `passes` are final ones, each with its leader if that
    is known.
    """

    states: list[Row]
    faults: list[Row]
    clients: list[Row]
    ops: list[Row]
    topics: dict[str, TopicFact]
    numbers: dict[Key, int]
    deleted: set[Key]
    spans: dict[int, list[Span]]
    logs: dict[int, list[Row]]
    passes: dict[int, list[Row]]

    def reads_are_log(self, facts: RunFacts) -> bool:
        """Whether every record that was read counts as part of the log: the target provides no
        logs, and no transaction may have been aborted after a read. (An import declares it for each
        topic.)"""
        shows_none = "logs" in facts.withheld and facts.runtime != IMPORTED
        return shows_none and not any(row["transactional_id"] for row in self.clients)

    @property
    def wall_ns(self) -> int | None:
        """Wall clock minus CLOCK_MONOTONIC, from the states."""
        known = (row for row in self.states if row["wall_ms"] is not None)
        first = next(known, None)
        return None if first is None else int(first["wall_ms"] * 1_000_000 - first["at_ns"])


def read(run_dir: Path, facts: RunFacts) -> SmallEvidence:
    logs, passes = (evidence.rows(run_dir, table) for table in ("logs", "passes"))
    states = _states(run_dir, facts)
    numbers = _partition_numbers(facts.topics, (*logs, *passes, *states))
    spans = spans_of(states, numbers)
    final = _by_partition((row for row in passes if row["final"]), numbers)
    for p, rows in final.items():
        _name_leaders(rows, spans.get(p, []))
    return SmallEvidence(
        states=states,
        faults=_faults(run_dir),
        clients=evidence.rows(run_dir, "clients"),
        ops=evidence.rows(run_dir, "admin_ops"),
        topics={topic.topic_id: topic for topic in facts.topics},
        numbers=numbers,
        deleted=_deleted_partitions(states),
        spans=spans,
        logs=_by_partition(_complete_logs(run_dir, logs), numbers),
        passes=final,
    )


def _states(run_dir: Path, facts: RunFacts) -> list[Row]:
    """States of the run itself, each once.

    The brokers' clean stop after the final reads writes states that are not evidence. A run without
    final reads was interrupted: its nodes were killed, and elections until then count.
    """
    has_final = any(phase.name == "final" for phase in facts.phases)
    end_ns = max(phase.end_ns for phase in facts.phases) if has_final else FOREVER_NS
    once = {(row["zxid"], row["path"]): row for row in evidence.rows(run_dir, "states")}
    return [
        row
        for row in once.values()
        if None not in (row["zxid"], row["at_ns"]) and row["at_ns"] <= end_ns
    ]


def _faults(run_dir: Path) -> list[Row]:
    """Faults that began. A fault without a value of `acted` acted if it has a proof."""
    faults = [row for row in evidence.rows(run_dir, "faults") if row["begin_ns"] is not None]
    for fault in faults:
        fault["acted"] = bool(fault["proof"]) if fault["acted"] is None else fault["acted"]
    return faults


def _complete_logs(run_dir: Path, logs: list[Row]) -> list[Row]:
    """Logs that were read to their end, each once. Records after damage on a disk are not known to
    be missing."""
    cut = {
        (Path(str(row["file"]).partition("nodes/")[2]).parts[0], Path(row["file"]).name)
        for row in evidence.rows(run_dir, "manifest")
        if not row["ended_properly"] and "/data/" in str(row["file"])
    }
    once = {(row["broker"], row["topic_id"], row["partition"]): row for row in reversed(logs)}
    return [
        row
        for row in reversed(once.values())
        if (f"b{row['broker']}", f"{row['topic']}-{row['partition']}") not in cut
    ]


def _deleted_partitions(states: list[Row]) -> set[Key]:
    """Partitions whose topic was deleted, by ZooKeeper's states."""
    last = {
        (row["topic_id"], row["partition"]): row["version"]
        for row in sorted(states, key=lambda row: int(row["zxid"]))
        if row["partition"] is not None
    }
    return {key for key, version in last.items() if version == -1}


def _partition_numbers(topics: Sequence[TopicFact], rows: Iterable[Row]) -> dict[Key, int]:
    keys = {(topic.topic_id, n) for topic in topics for n in range(topic.partitions)}
    keys |= {
        (row["topic_id"], row["partition"])
        for row in rows
        if row["topic_id"] is not None and row["partition"] is not None and row["partition"] >= 0
    }
    return {key: p for p, key in enumerate(sorted(keys))}


def _by_partition(table: Iterable[Row], numbers: dict[Key, int]) -> dict[int, list[Row]]:
    partition_rows: dict[int, list[Row]] = defaultdict(list)
    for row in table:
        p = numbers.get((row["topic_id"], row["partition"]))
        if p is not None:
            partition_rows[p].append(row)
    return partition_rows


def sort_passes(passes: list[Row], damaged: frozenset[str]) -> tuple[list[Row], list[Row]]:
    """Final passes that prove the offsets they covered, and those that stopped before their end or
    lack their offsets or isolation level. A pass does not count as stopped if its client began
    again at a later offset because the log had lost its beginning."""
    complete = [
        row for row in passes
        if row["complete"] and _is_identified(row) and row["client"] not in damaged
    ]  # fmt: skip
    return complete, [
        row for row in passes
        if not (row["complete"] and _is_identified(row))
        and not any(
            later["client"] == row["client"]
            and (later["from_offset"] or 0) > (row["from_offset"] or 0)
            for later in complete
        )
    ]  # fmt: skip


def _is_identified(row: Row) -> bool:
    return None not in (row["from_offset"], row["to_offset"], row["isolation"])


def _name_leaders(passes: list[Row], spans: list[Span]) -> None:
    """Sets the leader of passes without one, by ZooKeeper's states."""
    for row in passes:
        if row["leader"] is None and row["begin_ns"] is not None and row["end_ns"] is not None:
            over = [s for s in spans if s.begin_ns < row["end_ns"] and row["begin_ns"] < s.end_ns]
            led = {span.leader for span in over}
            row["leader"] = led.pop() if len(led) == 1 else None


def never_leading_replicas(
    topic: TopicFact, partition: int, logs: list[Row], passes: list[Row]
) -> list[str]:
    """Replicas that led during none of the passes."""
    leaders = {row["leader"] for row in passes}
    return [
        f"broker {row['broker']} of {topic.name}-{partition}"
        for row in logs
        if row["broker"] not in leaders
    ]


def last_assigned(states: Iterable[Row]) -> dict[Key, set[int]]:
    """The last replicas of a partition, from its state and from its topic's znode. Only the znode
    is written when a replica is removed."""
    return dict(_assigned_replicas(states))


def first_assigned(states: Iterable[Row]) -> dict[Key, set[int]]:
    """The replicas with which a partition was created."""
    replicas_of: dict[Key, set[int]] = {}
    for key, replicas in _assigned_replicas(states):
        replicas_of.setdefault(key, replicas)
    return replicas_of


def ever_assigned(states: Iterable[Row]) -> dict[Key, set[int]]:
    """All replicas that a partition ever had."""
    replicas_of: dict[Key, set[int]] = defaultdict(set)
    for key, replicas in _assigned_replicas(states):
        replicas_of[key] |= replicas
    return replicas_of


def fewest_assigned(states: Iterable[Row]) -> dict[Key, int]:
    """The size of each partition's smallest assignment."""
    counts: dict[Key, int] = {}
    for key, replicas in _assigned_replicas(states):
        counts[key] = min(len(replicas), counts.get(key, len(replicas)))
    return counts


def _assigned_replicas(states: Iterable[Row]) -> Iterator[tuple[Key, set[int]]]:
    for row in sorted(states, key=lambda state: int(state["zxid"] or 0)):
        if row["replicas"] is None or row["topic_id"] is None:
            continue
        replicas = json.loads(row["replicas"])
        by_partition = replicas if isinstance(replicas, dict) else {row["partition"]: replicas}
        for partition, replicas in by_partition.items():
            if partition is not None:
                yield (row["topic_id"], int(partition)), set(replicas)
