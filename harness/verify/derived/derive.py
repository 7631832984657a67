"""Computes the derived tables from the small evidence, once for every check and engine.

Ranges, ISRs and epochs are JSON texts in the evidence, which engines parse differently. Derived
tables hold them in plain columns. The cost grows with partitions, epochs, passes and faults, not
with the load. Flags are 0 or 1, so that both engines can sum them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from urteil.chaos.capabilities import ISR_REQUESTS
from urteil.harness.clients.applications import is_ordered, promise_of
from urteil.harness.clients.options import GroupOptions
from urteil.harness.scenario import RunFacts, Scenario, TopicFact
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.acknowledged_changes import change_rows
from urteil.harness.verify.derived.admin_tasks import admin_task_rows
from urteil.harness.verify.derived.broker_exits import exit_rows
from urteil.harness.verify.derived.broker_views import (
    answer_rows,
    since_creation,
    view_rows,
    without_late_isr,
)
from urteil.harness.verify.derived.coverage import (
    cover_rows,
    divergence_floor,
    epoch_rows,
    floor_rows,
    log_rows,
    read_ranges,
    uninformed_ns,
)
from urteil.harness.verify.derived.cycles import cycle_rows
from urteil.harness.verify.derived.deleted_records import deletions
from urteil.harness.verify.derived.deposed_controllers import deposed_rows
from urteil.harness.verify.derived.evictions import eviction_rows
from urteil.harness.verify.derived.harm import flushed_ns, harms
from urteil.harness.verify.derived.leftovers import leftover_rows
from urteil.harness.verify.derived.member_departures import departure_rows
from urteil.harness.verify.derived.members import member_rows
from urteil.harness.verify.derived.mirrors import mirror_rows, translation_rows
from urteil.harness.verify.derived.partitions import (
    administrators_changes,
    late_pass_begin,
    part_row,
    segments,
)
from urteil.harness.verify.derived.quota_limits import quota_rows
from urteil.harness.verify.derived.retention_promises import retention_columns
from urteil.harness.verify.derived.share_partitions import share_rows
from urteil.harness.verify.derived.shortened_retention import shortened_columns
from urteil.harness.verify.derived.small_evidence import (
    Key,
    SmallEvidence,
    ever_assigned,
    fewest_assigned,
    last_assigned,
    never_leading_replicas,
    read,
    sort_passes,
)
from urteil.harness.verify.derived.stale_ends import stale_end_rows
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.derived.static_rejoins import rejoin_rows
from urteil.harness.verify.derived.tables import DERIVED, Derived
from urteil.harness.verify.derived.takeovers import takeover_rows
from urteil.harness.verify.derived.topic_changes import killed_clients, lowest_min_isr
from urteil.harness.verify.derived.transactions import (
    group_position_rows,
    transactions_over_ns,
    txn_rows,
)
from urteil.harness.verify.derived.undisturbed_intervals import undisturbed_rows
from urteil.harness.verify.derived.writable_intervals import writable_rows
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.expected_outputs import expected_sql
from urteil.harness.verify.limits import FOREVER_NS

MASK_BITS = 60
"""The maximum number of final passes of a partition that count as proof; each has one bit."""


def derive(
    run_dir: Path, scenario: Scenario, facts: RunFacts, damaged: frozenset[str] = frozenset()
) -> Derived:
    """Reads the small evidence of `run_dir` and computes everything that checks share.

    `damaged` are the clients whose journals are incomplete. Their passes prove nothing.
    """
    small = read(run_dir, facts)
    derived = Derived(
        tables={name: [] for name in DERIVED},
        expected=expected_sql(run_dir, scenario),
        damaged=damaged,
        faults=small.faults,
        lacks=frozenset(facts.lacks),
        libraries={
            str(row["client"]): " ".join(filter(None, (row["library"], row["version"])))
            or "client unknown"
            for row in small.clients
        },
    )
    derived.tables["answers"] = answer_rows(run_dir, small.numbers)
    stopped_passes: set[str] = set()
    for partition in _partition_evidence(small, damaged, derived.tables["answers"]):
        stopped_passes |= {f"{row['topic']}-{row['partition']}" for row in partition.stopped_passes}
        derived.never_leading += partition.never_leading_replicas()
        _add_partition(derived.tables, partition, small, run_dir, scenario, facts)
    derived.stopped_passes = sorted(stopped_passes)
    _add_clients(derived.tables, run_dir, small, scenario, facts)
    _add_settings(derived.tables, small, scenario)
    derived.tables["undisturbed_intervals"] = undisturbed_rows(run_dir, small, scenario, facts)
    derived.tables["writable_intervals"] = writable_rows(small, scenario, facts, derived.partitions)
    end_ns = max((phase.end_ns for phase in facts.phases), default=0)
    derived.tables["acknowledged_changes"] = change_rows(small, end_ns)
    derived.tables["cluster_tasks"] = admin_task_rows(small, scenario, facts)
    derived.tables["leftover_logs"] = leftover_rows(run_dir, small, scenario, facts)
    derived.tables["broker_exits"] = exit_rows(run_dir, small)
    votes = evidence.rows(run_dir, "votes")
    derived.tables["deposed_controllers"] = deposed_rows(votes, small.faults, scenario)
    derived.tables["member_departures"] = departure_rows(run_dir, small, scenario, facts)
    derived.tables["static_rejoins"] = rejoin_rows(run_dir, small, scenario, facts)
    derived.tables["share_partitions"] = share_rows(run_dir, small, scenario, facts)
    derived.tables["quota_limits"] = quota_rows(small, scenario, facts)
    derived.tables["evictions"] = [
        row | {"n": number}
        for number, row in enumerate(
            eviction_rows(run_dir, small, scenario, facts)
            + takeover_rows(run_dir, small, scenario, facts)
        )
    ]
    killed = damaged | killed_clients(small.ops)
    derived.tables["damaged"] = [{"client": name} for name in sorted(damaged)]
    derived.tables["killed"] = [{"client": name} for name in sorted(killed)]
    return derived


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartitionEvidence:
    """The evidence about one partition.

    `last_replicas` is its last assignment, `all_replicas` every replica that it ever had, and
    `fewest_replicas` the size of its smallest assignment. `log_starts` are the log starts that
    brokers returned.
    """

    key: Key
    p: int
    topic: TopicFact | None
    spans: list[Span]
    logs: list[Row]
    complete_passes: list[Row]
    stopped_passes: list[Row]
    last_replicas: set[int]
    all_replicas: set[int]
    fewest_replicas: int | None
    log_starts: set[int]

    @property
    def final_passes(self) -> list[tuple[int, Row]]:
        """The final passes that count as proof, each with its bit."""
        return [(1 << index, row) for index, row in enumerate(self.complete_passes[:MASK_BITS])]

    def never_leading_replicas(self) -> list[str]:
        return (
            []
            if self.topic is None
            else never_leading_replicas(self.topic, self.key[1], self.logs, self.complete_passes)
        )


def _partition_evidence(
    small: SmallEvidence, damaged: frozenset[str], answers: list[Row]
) -> Iterator[_PartitionEvidence]:
    log_starts: dict[int, set[int]] = defaultdict(set)
    for row in answers:
        if row["kind"] == "earliest" and row["offset"] is not None:
            log_starts[row["p"]].add(row["offset"])
    last_replicas, all_replicas = last_assigned(small.states), ever_assigned(small.states)
    fewest_replicas = fewest_assigned(small.states)
    for key, p in small.numbers.items():
        complete, stopped = sort_passes(small.passes.get(p, []), damaged)
        yield _PartitionEvidence(
            key=key, p=p, topic=small.topics.get(key[0]), spans=small.spans.get(p, []),
            logs=small.logs.get(p, []), complete_passes=complete, stopped_passes=stopped,
            last_replicas=last_replicas.get(key, set()),
            all_replicas=all_replicas.get(key, set()),
            fewest_replicas=fewest_replicas.get(key), log_starts=log_starts[p],
        )  # fmt: skip


def _add_partition(
    tables: dict[str, list[Row]],
    partition: _PartitionEvidence,
    small: SmallEvidence,
    run_dir: Path,
    scenario: Scenario,
    facts: RunFacts,
) -> None:
    """Adds the partition's row of `partitions`, and its rows of the other tables by partition."""
    part = _part(tables, partition, small, run_dir, scenario, facts)
    tables["partitions"].append(part)
    tables["pass_bits"] += [
        {"client": row["client"], "session": row["session"], "pass": row["pass"], "p": partition.p}
        | {"bit": bit}
        for bit, row in partition.final_passes
    ]
    tables["cover"] += cover_rows(partition.p, partition.logs, partition.final_passes)
    tables["read_ranges"] += (
        [] if part["has_log"] else read_ranges(partition.p, partition.complete_passes)
    )
    topic = part["topic"]
    topic_min_isr = min(part["min_isr"], partition.fewest_replicas or part["min_isr"])
    tables["state_spans"] += [
        span.row()
        | {
            "p": partition.p,
            "uninformed_ns": uninformed_ns(span, small.faults),
            "foreign_isr": span.foreign_isr_members(partition.all_replicas),
            "min_isr": lowest_min_isr(small.ops, small.faults, topic, topic_min_isr, span.begin_ns),
        }
        for span in partition.spans
    ]
    tables["logs_p"] += log_rows(partition.p, partition.spans, partition.logs)
    tables["epochs"] += epoch_rows(partition.p, partition.logs)


def _part(
    tables: dict[str, list[Row]],
    partition: _PartitionEvidence,
    small: SmallEvidence,
    run_dir: Path,
    scenario: Scenario,
    facts: RunFacts,
) -> Row:
    part = part_row(
        partition.key, partition.p, partition.topic, scenario, partition.spans, partition.logs,
        partition.complete_passes, partition.last_replicas,
    )  # fmt: skip
    part |= {"gone": int(partition.key in small.deleted)} | administrators_changes(part, small.ops)
    partition_harms = harms(small.faults, part["topic"], partition.key[1])
    tables["floors"] += floor_rows(
        run_dir, part, partition.spans, partition.logs, partition_harms, small.faults
    )
    part |= retention_columns(partition.topic, scenario, facts, small.faults, small.ops)
    part["flushed_ns"] = flushed_ns(partition.spans, partition_harms, part.pop("flush_ns"))
    part |= shortened_columns(partition.topic, small.ops, small.faults, part["ends_ns"])
    part |= deletions(small.ops, small.faults, partition.topic, partition.key[1])
    part |= segments(partition.logs, part["final_leader"])
    part["reads_are_log"] |= int(part["in_run"] and small.reads_are_log(facts))
    part |= late_pass_begin(part, partition.logs, partition.complete_passes, partition.log_starts)
    if not facts.healed:
        part["agreed_end"] = divergence_floor(partition.logs, part["final_leader"])
    return part


def _add_clients(
    tables: dict[str, list[Row]],
    run_dir: Path,
    small: SmallEvidence,
    scenario: Scenario,
    facts: RunFacts,
) -> None:
    """Adds the rows about groups, Metadata responses, transactions, mirrors and last stable
    offsets."""
    names = {topic.name: topic.topic_id for topic in facts.topics}
    tables["grps"], tables["members"] = member_rows(run_dir)
    begin_ns = min((phase.begin_ns for phase in facts.phases), default=-FOREVER_NS)
    tables["views"] = since_creation(
        view_rows(run_dir, small.numbers, names, begin_ns), small.spans
    )
    if ISR_REQUESTS.name in facts.lacks:
        tables["views"] = without_late_isr(tables["views"], small.spans)
    tables["txn_p"] = txn_rows(run_dir, small.faults, scenario)
    tables["group_positions"] = group_position_rows(run_dir, tables["txn_p"], small.numbers)
    tables["mirrors"] = mirror_rows(facts.topics, small.numbers)
    tables["translations"] = translation_rows(run_dir, tables["mirrors"], small.numbers)
    partition_names = {
        p: f"{small.topics[topic_id].name if topic_id in small.topics else topic_id}-{partition}"
        for (topic_id, partition), p in small.numbers.items()
    }
    tables["cycles"], tables["graph"] = cycle_rows(
        run_dir, tables["txn_p"], small.numbers, partition_names
    )
    tables["stale_ends"] = stale_end_rows(
        run_dir, tables["answers"], small.spans, small.numbers, partition_names
    )


def _add_settings(tables: dict[str, list[Row]], small: SmallEvidence, scenario: Scenario) -> None:
    load = scenario.workload
    tables["settings"] = [
        {
            "in_flight": load.in_flight,
            "ordered": int(is_ordered(load)),
            "commits_before": int(GroupOptions.of(load).commit == "before"),
            "txns_over_ns": transactions_over_ns(scenario, tables["txn_p"], small.faults),
            "promise": promise_of(load),
            "wall_ns": small.wall_ns,
        }
    ]
