"""The small tables that checks share, and their columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from urteil.harness.verify.evidence import Row

_TYPES = {"s": pa.string(), "i": pa.int32(), "l": pa.int64(), "d": pa.float64()}


def _schema(columns: str) -> pa.Schema:
    pairs = (column.split(":") for column in columns.split())
    return pa.schema([pa.field(name, _TYPES[kind]) for name, kind in pairs])


DERIVED: dict[str, pa.Schema] = {
    "parts": _schema(
        "p:l topic_id:s topic:s partition:i ours:i copies:i final_leader:i has_log:i log_start:l "
        "log_end:l committed_end:l seen_end:l late_begin:l one_start:l replication:i min_isr:i "
        "unclean_on:i unclean_asked:i foreign_on:i compacted:i deletes:i "
        "unclean_floor:l "
        "last_epoch_ns:l agreed_end:l gone:i lost_floor:l spoilt_ns:l flushed_ns:l"
        " read_log:i sums_told:i ends_told:i told_ns:l delete_retention_ns:l min_lag_ns:l "
        "max_lag_ns:l retention_ns:l retention_told:i retention_bytes:l append_time:i "
        "sent_times:i max_bytes:l past_ms:l future_ms:l "
        "clock_moved:i trimmed:i cut_to:l deleted_to:l deleted_ns:l late_ns:l "
        "segment_ms:l segment_bytes:l short_ns:l short_segment_ns:l short_from_ns:l "
        "short_until_ns:l "
        "max_start:l active_base:l last_base:l ends_ns:l calm_ns:l"
    ),
    "views": _schema("p:l broker:i at_ns:l leader:i leader_epoch:i isr_size:i"),
    "answers": _schema(
        "p:l node:i invoke_ns:l complete_ns:l api_version:i kind:s query:s asked_ms:l "
        "asked_epoch:l led_epoch:l found_ms:l offset:l leader_epoch:i error:s"
    ),
    "cover": _schema("p:l lo:l hi:l copies:i mask_ru:l mask_rc:l"),
    "stretches": _schema("p:l lo:l hi:l"),
    "pass_bits": _schema("client:s session:i pass:l p:l bit:l"),
    "floors": _schema("p:l from_ns:l to_ns:l leader:i any_floor:l unclean_floor:l lost_floor:l"),
    "spans": _schema(
        "p:l version:i begin_ns:l end_ns:l leader:i leader_epoch:i controller_epoch:i isr:s "
        "isr_size:i prev_version:i prev_leader:i prev_leader_epoch:i prev_controller_epoch:i "
        "prev_isr:s path:s blind_ns:l min_isr:i strangers:s"
    ),
    "epochs": _schema("p:l broker:i epoch:i start:l log_start:l"),
    "logs_p": _schema(
        "p:l broker:i log_start:l log_end:l high_watermark:l recovery_point:l in_isr:i "
        "epochs_told:i"
    ),
    "windows": _schema("n:i begin_ns:l end_ns:l away:i"),
    "damaged": _schema("client:s"),
    "killed": _schema("client:s"),
    "grps": _schema("grp:s bit:l"),
    "members": _schema("client:s session:i bits:l"),
    "settings": _schema("in_flight:i wall_ns:l commits_before:i promise:s txns_over_ns:l"),
    "txn_p": _schema(
        "client:s session:i txn:l tid:s begin_ns:l commit_ns:l end_ns:l asked:i outcome:s fate:s "
        "fenced_ns:l cut_short:i late:i grp:s"
    ),
    "stands": _schema("grp:s p:l position:l asked_ns:l"),
    "cycles": _schema("kind:s p:l off:l at_ns:l until_ns:l n:i txns:s"),
    "graph": _schema("kind:s edges:l"),
    "commit_breaks": _schema(
        "kind:s p:l grp:s client:s session:i at_ns:l until_ns:l answered:l acknowledged:l deposed:i"
    ),
    "trials": _schema("n:i p:l fault:s targets:s begin_ns:l from_ns:l to_ns:l"),
    "resumptions": _schema("p:l fault:s targets:s whole_ns:l from_ns:l to_ns:l"),
    "standstills": _schema("grp:s from_ns:l to_ns:l tried:i ended:i clients:i"),
    "quiets": _schema("p:l from_ns:l to_ns:l bound_ns:l"),
    "calms": _schema(
        "n:i who:s kind:s p:l from_ns:l to_ns:l bound_ns:l reached:l moved:i lately:i live:i "
        "tried:i committed:i"
    ),
    "expulsions": _schema("n:i who:s p:l times:i from_ns:l to_ns:l leader:i"),
    "departures": _schema("n:i who:s grp:s p:l left_ns:l limit_ns:l taken_ns:l died:i"),
    "returns": _schema("n:i who:s grp:s p:l died_ns:l back_ns:l before:i after:i"),
    "rations": _schema("n:i client:s kind:s rate:d from_ns:l to_ns:l record_bytes:l bytes:l"),
    "recoveries": _schema(
        "n:i fault:s targets:s p:l healed_ns:l recovery_s:d deadline_s:d judged:i"
    ),
    "leftovers": _schema("what:s p:l broker:i name:s age_s:d limit_s:d late:i"),
    "ends": _schema("at_ns:l broker:s kind:s exit_code:i"),
    "chores": _schema("kind:s p:l from_ns:l to_ns:l asked:s stands:s limit_s:d late:i"),
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

    @property
    def logless(self) -> bool:
        """Whether a partition of the run's own topics left no log of its final leader."""
        return any(part["ours"] and not part["has_log"] for part in self.parts)

    def arrow(self, name: str) -> pa.Table:
        """One derived table with all its columns."""
        return pa.Table.from_pylist(self.tables.get(name, []), schema=DERIVED[name])
