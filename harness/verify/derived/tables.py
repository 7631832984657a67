"""The derived tables, which all checks share, and their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from urteil.harness.verify.evidence import Row

_TYPES = {"s": pa.string(), "i": pa.int32(), "l": pa.int64(), "d": pa.float64()}


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A small table that Python computes before any query runs."""

    about: str
    """What one row is."""
    columns: str
    """`name:type` of each column; types are s(tring), i(nt32), l (int64) and d(ouble)."""
    made_of: tuple[str, ...] = ()
    """The evidence tables on which a finding from this table rests. It is empty where these are the
    tables of records: the guarantee's own `rests_on` names them."""
    columns_made_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Columns that rest on further evidence tables, for example excuses by faults and
    administrators."""

    @property
    def schema(self) -> pa.Schema:
        pairs = (column.split(":") for column in self.columns.split())
        return pa.schema([pa.field(name, _TYPES[kind]) for name, kind in pairs])


DERIVED: dict[str, DerivedTable] = {
    "partitions": DerivedTable(
        "a partition, with its settings, its final leader and what permits losses in it",
        "p:l topic_id:s topic:s partition:i in_run:i workload_topic:i copies:i final_leader:i "
        "has_log:i log_start:l log_end:l committed_end:l seen_end:l late_pass_begin:l "
        "common_start:l replication:i min_isr:i unclean_on:i unclean_requested:i "
        "foreign_permitted:i compacted:i deletes:i unclean_floor:l last_epoch_ns:l agreed_end:l "
        "gone:i lost_floor:l "
        "losses_ns:l flushed_ns:l reads_are_log:i checksums_known:i ends_known:i ends_known_ns:l "
        "delete_retention_ns:l min_lag_ns:l max_lag_ns:l retention_ns:l retention_configured:i "
        "dirty_ratio:d retention_bytes:l append_time:i sent_times:i max_bytes:l past_ms:l "
        "future_ms:l clock_moved:i trimmed:i cut_end:l deleted_to:l deleted_ns:l late_ns:l "
        "segment_ms:l segment_bytes:l short_ns:l short_segment_ns:l short_from_ns:l "
        "short_until_ns:l max_start:l active_base:l last_base:l ends_ns:l calm_ns:l",
        columns_made_of={
            "lost_floor": ("faults",),
            "losses_ns": ("admin_ops", "faults", "states"),
            "unclean_on": ("admin_ops", "states"),
            "unclean_requested": ("admin_ops",),
            "flushed_ns": ("faults", "states"),
            "calm_ns": ("faults",),
            "clock_moved": ("faults",),
            "trimmed": ("admin_ops",),
            "cut_end": ("admin_ops",),
            "deleted_to": ("admin_ops",),
            "late_pass_begin": ("admin_ops",),
            "sent_times": ("admin_ops",),
            "max_bytes": ("admin_ops",),
            "past_ms": ("admin_ops",),
            "future_ms": ("admin_ops",),
            "short_from_ns": ("admin_ops", "faults"),
        },
    ),
    "views": DerivedTable(
        "a partition in a broker's Metadata response",
        "p:l broker:i at_ns:l leader:i leader_epoch:i isr_size:i",
        made_of=("samples",),
    ),
    "answers": DerivedTable(
        "a broker's response to a lookup of offsets, epochs or producers",
        "p:l node:i invoke_ns:l complete_ns:l api_version:i kind:s query:s requested_ms:l "
        "requested_epoch:l current_epoch:l answered_ms:l offset:l leader_epoch:i error:s",
        made_of=("offset_answers",),
    ),
    "cover": DerivedTable(
        "a range of offsets, with the logs and final passes that cover it",
        "p:l lo:l hi:l copies:i mask_ru:l mask_rc:l",
        made_of=("logs", "passes"),
    ),
    "read_ranges": DerivedTable(
        "a range of offsets that complete final passes cover, of a partition without logs",
        "p:l lo:l hi:l",
    ),
    "pass_bits": DerivedTable(
        "a complete final pass over a partition, and its bit",
        "client:s session:i pass:l p:l bit:l",
    ),
    "floors": DerivedTable(
        "a span of send times, with the offsets from which elections and disks may lose a send",
        "p:l from_ns:l to_ns:l leader:i any_floor:l unclean_floor:l lost_floor:l",
        columns_made_of={"lost_floor": ("faults",)},
    ),
    "state_spans": DerivedTable(
        "a version of a partition's state, with its begin and end",
        "p:l version:i begin_ns:l end_ns:l leader:i leader_epoch:i controller_epoch:i "
        "isr:s isr_size:i prev_version:i prev_leader:i prev_leader_epoch:i "
        "prev_controller_epoch:i prev_isr:s prev_elr:s path:s uninformed_ns:l min_isr:i "
        "foreign_isr:s",
        made_of=("states",),
        columns_made_of={"min_isr": ("admin_ops",)},
    ),
    "epochs": DerivedTable(
        "a leader epoch in a replica's log",
        "p:l broker:i epoch:i start:l log_start:l",
        made_of=("logs",),
    ),
    "logs_p": DerivedTable(
        "a replica's log",
        "p:l broker:i log_start:l log_end:l high_watermark:l recovery_point:l in_isr:i "
        "epochs_known:i",
        made_of=("logs",),
    ),
    "windows": DerivedTable(
        "a fault, with the time in which it may have effects",
        "n:i begin_ns:l end_ns:l ended_broker:i",
    ),
    "damaged": DerivedTable(
        "a client whose journal is incomplete",
        "client:s",
    ),
    "killed": DerivedTable(
        "a client that was killed, or whose journal is incomplete",
        "client:s",
    ),
    "grps": DerivedTable(
        "a consumer group, and its bit",
        "grp:s bit:l",
        made_of=("clients", "assignments", "commits"),
    ),
    "members": DerivedTable(
        "a session of a client, with the bits of its groups",
        "client:s session:i bits:l",
        made_of=("clients", "assignments", "commits"),
    ),
    "settings": DerivedTable(
        "settings of the run: one row",
        "in_flight:i wall_ns:l commits_before:i promise:s ordered:i txns_over_ns:l",
    ),
    "txn_p": DerivedTable(
        "a transaction, with its times and its fate",
        "client:s session:i txn:l tid:s begin_ns:l commit_ns:l end_ns:l as_requested:i outcome:s "
        "fate:s fenced_ns:l early_abort:i late:i grp:s",
    ),
    "group_positions": DerivedTable(
        "a group's last committed offset in a partition",
        "grp:s p:l position:l fetched_ns:l",
    ),
    "cycles": DerivedTable(
        "a cycle of transactions, with its edges",
        "kind:s p:l off:l at_ns:l until_ns:l n:i txns:s edges:s",
    ),
    "graph": DerivedTable(
        "a kind of dependency between transactions, with its number of edges",
        "kind:s edges:l",
    ),
    "stale_ends": DerivedTable(
        "a last stable offset at a record of a complete transaction",
        "p:l off:l at_ns:l until_ns:l node:i leader_epoch:i known_ns:l client:s session:i txn:l "
        "txns:s edges:s",
        made_of=("offset_answers", "states"),
    ),
    "commit_breaks": DerivedTable(
        "a violation of the order of commits and their reads",
        "kind:s p:l grp:s client:s session:i at_ns:l until_ns:l answered:l acknowledged:l "
        "former_coordinator:i",
        made_of=("commits", "commit_reads", "states", "assignments", "reads", "polls", "admin_ops"),
    ),
    "mirrors": DerivedTable(
        "a partition that mirrors one of another cluster",
        "p:l source_p:l",
    ),
    "translations": DerivedTable(
        "a committed offset in a mirror, with the position of its group in the source",
        "grp:s p:l source_p:l position:l processed:l at_ns:l until_ns:l",
        made_of=("commits", "commit_reads"),
    ),
    "progress_in_faults": DerivedTable(
        "a fault and a partition that must make progress during it",
        "n:i p:l fault:s targets:s begin_ns:l from_ns:l to_ns:l",
        made_of=("faults", "states"),
    ),
    "progress_after_faults": DerivedTable(
        "a healed fault and a partition that must make progress after it",
        "p:l fault:s targets:s in_sync_ns:l from_ns:l to_ns:l",
    ),
    "transaction_progress": DerivedTable(
        "an interval in which the transactions of a group must not all fail",
        "grp:s from_ns:l to_ns:l failed:i succeeded:i clients:i",
        made_of=("faults", "states", "txns"),
    ),
    "progress_without_faults": DerivedTable(
        "an interval without a fault in which a partition must make progress",
        "p:l from_ns:l to_ns:l bound_ns:l",
        made_of=("faults", "states"),
    ),
    "writable_intervals": DerivedTable(
        "an interval in which nothing hinders a partition's leader, its controller and their links",
        "p:l from_ns:l to_ns:l bound_ns:l leader:i wall_clock:i",
        made_of=("faults", "states"),
    ),
    "undisturbed_intervals": DerivedTable(
        "an undisturbed interval of a group or reader in a partition",
        "n:i name:s kind:s p:l from_ns:l to_ns:l bound_ns:l reached:l progressed:i "
        "recent_progress:i polled:i commit_attempts:i successful_commits:i",
        made_of=("polls", "passes", "commits", "clients", "assignments", "faults", "states"),
    ),
    "prompt_reads": DerivedTable(
        "an interval in which nothing delays a reader's fetches of a partition",
        "client:s session:i p:l from_ns:l to_ns:l late_ns:l min_count:i",
        made_of=("clients", "faults", "states", "admin_ops", "samples"),
    ),
    "prompt_sends": DerivedTable(
        "an interval in which nothing delays the acknowledgements of a producer in a partition",
        "client:s session:i p:l from_ns:l to_ns:l late_ns:l min_count:i",
        made_of=("clients", "faults", "states", "admin_ops", "samples"),
    ),
    "evictions": DerivedTable(
        "a member that was removed from its group although it polled",
        "n:i client:s p:l evictions:i from_ns:l to_ns:l leader:i",
        made_of=("polls", "assignments", "clients", "faults", "states"),
    ),
    "member_departures": DerivedTable(
        "a partition of a member that left its group, or died",
        "n:i client:s grp:s p:l left_ns:l limit_ns:l reassigned_ns:l died:i",
        made_of=("assignments", "clients", "faults", "states", "admin_ops"),
    ),
    "static_rejoins": DerivedTable(
        "a static member that returned within its session timeout",
        "n:i client:s grp:s p:l died_ns:l rejoined_ns:l old_generation:i new_generation:i",
        made_of=("assignments", "clients", "faults", "states", "admin_ops"),
    ),
    "share_partitions": DerivedTable(
        "a share group and a partition that it consumes, with the group's settings",
        "grp:s p:l lock_ns:l delivery_limit:i unseen_deliveries:i drained_ns:l",
        made_of=("deliveries", "polls", "faults"),
    ),
    "quota_limits": DerivedTable(
        "an interval in which a client had a quota",
        "n:i client:s kind:s rate:d from_ns:l to_ns:l record_bytes:l bytes:l",
        made_of=("admin_ops", "clients", "faults", "states"),
    ),
    "recoveries": DerivedTable(
        "a healed fault and a partition, with the time of recovery",
        "n:i fault:s targets:s p:l healed_ns:l recovery_s:d deadline_s:d judged:i",
        made_of=("faults", "states"),
    ),
    "leftover_logs": DerivedTable(
        "a log that should not be on a broker's disk any more",
        "kind:s p:l broker:i name:s age_s:d limit_s:d late:i",
        made_of=("faults", "states", "logs", "samples"),
    ),
    "broker_exits": DerivedTable(
        "a broker's or controller's process, and its exit by itself if there was one",
        "at_ns:l node:s kind:s exit_code:i",
        made_of=("samples", "faults"),
    ),
    "deposed_controllers": DerivedTable(
        "a leader of a KRaft quorum after the election of its successor",
        "node:i epoch:i next_epoch:i next_leader:i from_ns:l to_ns:l limit_s:d late:i",
        made_of=("votes", "faults"),
    ),
    "acknowledged_changes": DerivedTable(
        "an acknowledged change of a topic, a setting or a quota, and the actual state at the end",
        "kind:s at_ns:l until_ns:l change:s actual:s undone:i",
        made_of=("states", "admin_ops"),
    ),
    "cluster_tasks": DerivedTable(
        "a requested or automatic administrative task, with its deadline",
        "kind:s p:l from_ns:l to_ns:l task:s shortfall:s limit_s:d late:i",
        made_of=("faults", "states", "admin_ops"),
    ),
}
"""Derived table to its declaration. `p` is the ordinal of (topic_id, partition) everywhere."""


@dataclass(slots=True)
class Derived:
    """The derived tables, and further facts that the judgement needs.

    `damaged` are the clients whose journals are missing or incomplete although the lab did not kill
    them. `stopped_passes` names the final passes that stopped before their end, `never_leading` the
    replicas that led during none of them. `lacks` are the capabilities that the brokers do not
    have. `expected` is the query that computes an application's results, if there is one.
    """

    tables: dict[str, list[Row]]
    damaged: frozenset[str] = frozenset()
    stopped_passes: list[str] = field(default_factory=list)
    never_leading: list[str] = field(default_factory=list)
    faults: list[Row] = field(default_factory=list)
    libraries: dict[str, str] = field(default_factory=dict)
    lacks: frozenset[str] = frozenset()
    expected: str = ""

    @property
    def partitions(self) -> list[Row]:
        return self.tables["partitions"]

    @property
    def logless(self) -> bool:
        """Whether the log of the final leader is missing for a partition of the run's topics."""
        return any(part["in_run"] and not part["has_log"] for part in self.partitions)

    def arrow(self, name: str) -> pa.Table:
        """One derived table with all its columns."""
        return pa.Table.from_pylist(self.tables.get(name, []), schema=DERIVED[name].schema)
