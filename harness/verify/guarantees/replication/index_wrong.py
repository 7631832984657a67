"""Every entry of an index points at its batch; the files of every segment are checked.

An entry of an offset index names a position where a batch begins, at or before its offset. An
entry of a time index names an offset in the batch with exactly that timestamp, with no later
timestamp before it. An entry of a transaction index names an abort marker. Entries beyond the
end of the log are left out: after a power cut the next start repairs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.reference import Row, SmallHistory, Violation

_BAD = """
CASE WHEN placed_entries.kind = 'offset'
     AND (placed_entries.missing = 1 OR placed_entries.there_base > placed_entries.offset)
     THEN 'offset'
  WHEN placed_entries.kind = 'time'
  AND (placed_entries.missing = 1
       OR placed_entries.there_timestamp_ms <> placed_entries.timestamp_ms
    OR COALESCE(placed_entries.before_timestamp_ms, placed_entries.timestamp_ms)
    > placed_entries.timestamp_ms) THEN 'time'
  WHEN placed_entries.kind = 'txn' AND COALESCE(placed_entries.there, '') <> 'abort'
    AND placed_entries.offset < placed_entries.log_end THEN 'transaction'
  WHEN placed_entries.kind <> 'txn' AND placed_entries.offset <= placed_entries.prev_offset
  THEN placed_entries.kind || ', not ascending' END
"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """An entry within a log describes the batch at its position, and entries of a file ascend."""
    for partition in history.partitions:
        ends = {log.broker: log.log_end for log in partition.logs}
        for entry in partition.indexes:
            is_inside = entry.offset < ends.get(entry.broker, 0)
            earlier = [
                other
                for other in partition.indexes
                if all(other[name] == entry[name] for name in ("broker", "segment_base", "kind"))
                and other.entry < entry.entry
            ]
            before = max(earlier, key=lambda other: int(other.entry), default=None)
            kind = _mistake(entry, is_inside)
            if kind is None and entry.kind != "txn" and before and entry.offset <= before.offset:
                kind = f"{entry.kind}, not ascending"
            if kind:
                subject = (entry.broker, entry.segment_base, entry.entry)
                yield partition.violation(kind, entry.offset, None, *subject)


def _mistake(entry: Row, is_inside: bool) -> str | None:
    """The kind of difference between an entry and the batch at its position."""
    is_lost = is_inside and entry.there is None
    match entry.kind:
        case "offset":
            is_after = entry.there is not None and entry.there_base > entry.offset
            return "offset" if is_lost or is_after else None
        case "time":
            has_another = entry.there is not None and entry.there_timestamp_ms != entry.timestamp_ms
            is_late = (entry.before_timestamp_ms or 0) > entry.timestamp_ms
            return "time" if is_lost or has_another or is_late else None
    return "transaction" if is_inside and entry.there != "abort" else None


def _explain(row: Mapping[str, Any]) -> str:
    kind, _, order = str(row["sub_kind"]).partition(", ")
    entry = (
        f"Entry {row['entry']} of the {kind} index of segment {row['segment_base']} on "
        f"broker {row['broker']} names {place(row)}"
    )
    if order:
        return f"{entry}, and the entry before it {row['prev_offset']}."
    if row["there_base"] is None:
        return f"{entry}, but nothing is there."
    if kind == "transaction":
        return f"{entry}, but no abort marker is there."
    if kind == "offset":
        return f"{entry}, but the batch it points at begins at {row['there_base']}."
    if row["there_timestamp_ms"] != row["timestamp_ms"]:
        return (
            f"{entry} as of {row['timestamp_ms']}, but the batch there is of "
            f"{row['there_timestamp_ms']}."
        )
    return (
        f"{entry} as of {row['timestamp_ms']}, the largest timestamp so far, but a batch before it "
        f"is of {row['before_timestamp_ms']}."
    )


GUARANTEE = Guarantee(
    name="index_wrong",
    rank=20,
    about="an entry of an index does not point at its batch",
    promise="The offset index maps offsets to file positions, the time index timestamps to "
    "offsets, the transaction index aborted transactions to their markers.",
    source="Kafka documentation, 5.4 Log; KIP-33; OffsetIndex, TimeIndex, TransactionIndex",
    sub_kinds={
        "offset": "an entry of an offset index names no batch, or one after its offset",
        "time": "an entry of a time index names no batch, or one with another timestamp",
        "transaction": "an entry of a transaction index names no abort marker",
        "offset, not ascending": "the entries of an offset index do not ascend",
        "time, not ascending": "the entries of a time index do not ascend",
    },
    details=(
        "An entry of an offset, time or transaction index in any segment on any broker does not "
        "point at its batch, or entries do not ascend.",
    ),
    not_counted=("Zeros of preallocated space.",),
    opportunities="SELECT COUNT(*) AS n FROM indexes",
    violations=f"""
SELECT entries.bad AS sub_kind, entries.p, entries.offset AS off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, entries.broker, entries.segment_base, entries.entry,
  entries.position, entries.timestamp_ms, entries.there_base, entries.there_timestamp_ms,
  entries.before_timestamp_ms, entries.prev_offset
FROM (SELECT placed_entries.*, {_BAD} AS bad
      FROM (SELECT partitions.p, indexes.*, logs_p.log_end,
              CASE WHEN indexes.there IS NULL AND indexes.offset < logs_p.log_end THEN 1
                   ELSE 0 END AS missing,
              LAG(indexes.offset) OVER (PARTITION BY indexes.broker, indexes.topic_id,
                  indexes.partition,
              indexes.segment_base, indexes.kind ORDER BY indexes.entry) AS prev_offset
            FROM indexes
            JOIN partitions ON partitions.topic_id = indexes.topic_id
              AND partitions.partition = indexes.partition
            LEFT JOIN logs_p ON logs_p.p = partitions.p
              AND logs_p.broker = indexes.broker) placed_entries) entries
WHERE entries.bad IS NOT NULL""",
    explain=_explain,
    tie="finding.broker, finding.segment_base, finding.entry",
    needs=("indexes",),
    reads=("partitions", "logs_p", "indexes"),
    rests_on=("indexes",),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.broker, violation.segment_base, violation.entry)",
)
