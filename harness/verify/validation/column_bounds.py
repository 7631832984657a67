"""Bounds of columns: impossible numbers, unknown words, and rows without a required column.

Such values are damage of the evidence: the verdict is UNKNOWN, and nothing is held against the
cluster.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from urteil.harness.verify.derived.state_spans import FOREVER_NS

FREE = frozenset({"timestamp_ms", "there_timestamp_ms", "before_timestamp_ms", "sequence"})
"""Columns that clients fill as they like, or count around the end of their type."""

NO_NUMBER = {
    **dict.fromkeys(("broker", "partition", "partition_intended", "session", "pass", "poll"), 0),
    **dict.fromkeys(("position_in_poll", "op", "txn", "attempts", "pid", "api_version"), 0),
    **dict.fromkeys(("log_start", "log_end", "high_watermark", "recovery_point"), 0),
    **dict.fromkeys(("from_offset", "to_offset", "batch_base", "batch_bytes", "batch_crc"), 0),
    **dict.fromkeys(("segment_base", "reads.offset", "replicas.offset"), 0),
    **dict.fromkeys(("offset", "position_before", "position_after", "processed_to"), -1),
    **dict.fromkeys(("leader_epoch", "controller", "controller_epoch", "generation"), -1),
    **dict.fromkeys(("version", "node", "producer_id", "producer_epoch", "acks"), -1),
    "leader": -2,
}
"""The least that a column may hold; of a table alone as `table.column`. Kafka's own words for none
are negative, a leader's are two: nobody, and nobody any more (a topic that is deleted)."""

MOST = {
    "acks": 1,
    **dict.fromkeys(("offset_answers.offset", "op", "pass", "poll", "txn"), (1 << 62) - 1),
    "wall_ms": FOREVER_NS // 1_000_000,
}
"""The most that a column may hold, of a table alone likewise: clients do not count that far. Times
in ns end before FOREVER_NS."""

WHOSE = ("client", "session")
_PLACE = ("topic_id", "partition")
_OF_GROUP = (*WHOSE, "group", *_PLACE)
NEEDED = {
    **dict.fromkeys(("clients", "passes"), WHOSE),
    "sends": (*WHOSE, "op"),
    "replicas": ("broker", *_PLACE),
    "reads": ("pass", "poll", "position_in_poll"),
    "polls": (*WHOSE, "poll", "outcome"),
    "commits": (*_OF_GROUP, "invoke_ns", "outcome", "offset"),
    "commit_reads": (*_OF_GROUP, "invoke_ns", "outcome"),
    "assignments": (*_OF_GROUP, "at_ns", "event"),
    "offset_answers": (*_PLACE, "invoke_ns", "complete_ns", "query"),
    "accesses": ("client", "node", "subject", "invoke_ns", "outcome"),
    "faults": ("fault", "begin_ns"),
    "indexes": ("broker", *_PLACE, "segment_base", "kind", "entry", "offset"),
    "admin_ops": ("act", "outcome"),
}
"""Columns without which a row's subject is unknown."""

TOLD_BY_ALL = {
    "sends": ("acks",),
    "replicas": ("batch_base", "batch_bytes"),
    "passes": ("from_offset", "isolation"),
    "logs": ("log_start",),
}
"""Columns that are set in every row of a file or in none. Flags are excepted: null is false."""

_ISOLATIONS = frozenset({"read_uncommitted", "read_committed"})
_OUTCOMES = frozenset({"ok", "fail", "info"})
WORDS = {
    "clients": {"isolation": _ISOLATIONS},
    "passes": {"isolation": _ISOLATIONS},
    "txns": {"outcome": frozenset({"committed", "aborted", "unknown", "fenced"})},
    "commits": {"outcome": _OUTCOMES},
    "commit_reads": {"outcome": _OUTCOMES},
    "admin_ops": {"outcome": _OUTCOMES},
    "polls": {"outcome": _OUTCOMES, "event": frozenset({"seek", "reset", "rebalance"})},
    "assignments": {
        "event": frozenset({"assigned", "revoked", "lost", "given", "kept", "forgotten"})
    },
    "replicas": {"control": frozenset({"commit", "abort"})},
    "indexes": {"kind": frozenset({"offset", "time", "txn"})},
}
"""Columns that hold one of a few words, or null: of a row with another one no check knows what it
says. (What sends became is asked with their values.)"""


def limits(table: str, column: pa.Field) -> tuple[int, int] | None:
    """The least and the most that a column may hold; None where anything goes. No number reaches
    the end of its type."""
    if column.name in FREE or not pa.types.is_integer(column.type):
        return None
    far = (1 << (column.type.bit_width - 1)) - 1
    least = NO_NUMBER.get(f"{table}.{column.name}", NO_NUMBER.get(column.name, 1 - far))
    most = FOREVER_NS - 1 if column.name.endswith("_ns") else far - 1
    return least, MOST.get(f"{table}.{column.name}", MOST.get(column.name, most))


def wild(part: pq.ParquetFile, table: str, ours: pa.Schema) -> dict[str, int]:
    """Columns of `ours` with numbers out of bounds in `part`, whatever their width there, each
    with one."""
    have = part.schema_arrow
    examples = {}
    for column in ours:
        ends = limits(table, column)
        if ends is None or column.name not in have.names:
            continue
        if pa.types.is_integer(have.field(column.name).type):
            low, high = _reach(part, column.name)
            if low < ends[0] or high > ends[1]:
                examples[column.name] = low if low < ends[0] else high
    return examples


def strange(part: pq.ParquetFile, table: str) -> dict[str, str]:
    """Columns with words that are none of theirs in `part`, each with the first."""
    names = {column.path for column in part.schema}
    texts = {
        name: known
        for name, known in WORDS.get(table, {}).items()
        if name in names and nulls(part, name) < part.metadata.num_rows
    }
    examples: dict[str, str] = {}
    for group in range(part.num_row_groups if texts else 0):
        rows = part.read_row_group(group, [*texts])
        for name, known in texts.items():
            others = {str(one) for one in pc.unique(rows[name]).to_pylist() if one is not None}
            if others - known:
                examples[name] = min(others - known)
    return examples


def blank(part: pq.ParquetFile, table: str) -> list[str]:
    """Columns of which `part` has rows without, though all rows need them, or others have them."""
    names = {column.path for column in part.schema}  # of lists nobody asks
    needed = [name for name in NEEDED.get(table, ()) if name in names and nulls(part, name)]
    partly = (name for name in TOLD_BY_ALL.get(table, ()) if name in names)
    return needed + [name for name in partly if 0 < nulls(part, name) < part.metadata.num_rows]


def nulls(part: pq.ParquetFile, name: str) -> int:
    found = 0
    for group in range(part.num_row_groups):
        statistics = part.metadata.row_group(group).column(_place(part, name)).statistics
        if statistics is not None and statistics.has_null_count:
            found += statistics.null_count
        else:
            found += part.read_row_group(group, [name]).column(0).null_count
    return found


def _place(part: pq.ParquetFile, name: str) -> int:
    return next(n for n in range(len(part.schema)) if part.schema.column(n).path == name)


def ends(part: pq.ParquetFile, name: str) -> set[Any]:
    """The least and the most in a column's parts, by the footer or, without statistics, by
    what is read; nothing where there is no such column."""
    if name not in {column.path for column in part.schema}:
        return set()
    found: set[Any] = set()
    for group in range(part.num_row_groups):
        statistics = part.metadata.row_group(group).column(_place(part, name)).statistics
        if statistics is not None and statistics.has_min_max:
            found |= {statistics.min, statistics.max}
        else:
            low_high = pc.min_max(part.read_row_group(group, [name]).column(0)).as_py()
            found |= {*low_high.values()}
    return found - {None}


def _reach(part: pq.ParquetFile, name: str) -> tuple[int, int]:
    """The least and the most of a column of numbers, and of 0."""
    found = ends(part, name) | {0}
    return min(found), max(found)


def tamed(values: pa.Array, table: str, ours: pa.Field) -> pa.Array:
    """`values` with null for each that is out of bounds."""
    ends = limits(table, ours)
    if ends is None or not pa.types.is_integer(values.type):
        return values
    sane = pc.and_(pc.less_equal(values, ends[1]), pc.greater_equal(values, ends[0]))
    return pc.if_else(sane, values, pa.scalar(None, values.type))
