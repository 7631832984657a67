"""Every entry of an index points at its batch; the files of every segment are checked.

An entry of an offset index names a position where a batch begins, at or before its offset. An
entry of a time index names an offset in the batch with exactly that timestamp, with no later
timestamp before it. An entry of a transaction index names an abort marker. Entries beyond the
end of the log are left out: after a power cut the next start repairs them."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Guarantee, place

_BAD = """
CASE WHEN i.kind = 'offset' AND (i.missing = 1 OR i.there_base > i.offset) THEN 'offset'
  WHEN i.kind = 'time' AND (i.missing = 1 OR i.there_timestamp_ms <> i.timestamp_ms
    OR COALESCE(i.before_timestamp_ms, i.timestamp_ms) > i.timestamp_ms) THEN 'time'
  WHEN i.kind = 'txn' AND COALESCE(i.there, '') <> 'abort'
    AND i.offset < i.log_end THEN 'transaction'
  WHEN i.kind <> 'txn' AND i.offset <= i.prev_offset THEN i.kind || ', not ascending' END
"""

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
    opportunities="SELECT COUNT(*) AS n FROM indexes i",
    violations=f"""
SELECT n.bad AS sub_kind, n.p, n.offset AS off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, n.broker, n.segment_base, n.entry, n.position,
  n.timestamp_ms, n.there_base, n.there_timestamp_ms
FROM (SELECT i.*, {_BAD} AS bad
      FROM (SELECT q.p, i.*, l.log_end,
              CASE WHEN i.there IS NULL AND i.offset < l.log_end THEN 1 ELSE 0 END AS missing,
              LAG(i.offset) OVER (PARTITION BY i.broker, i.topic_id, i.partition,
              i.segment_base, i.kind ORDER BY i.entry) AS prev_offset
            FROM indexes i
            JOIN parts q ON q.topic_id = i.topic_id AND q.partition = i.partition
            LEFT JOIN logs_p l ON l.p = q.p AND l.broker = i.broker) i) n
WHERE n.bad IS NOT NULL""",
    explain=lambda row: (
        f"Entry {row['entry']} of the {row['sub_kind']} index of segment {row['segment_base']} on "
        f"broker {row['broker']} says {place(row)}, "
        + (
            "but nothing is there."
            if row["there_base"] is None
            else f"but the batch it points at begins at {row['there_base']}."
        )
    ),
    tie="j.broker, j.segment_base, j.entry",
    needs=("indexes",),
    reads=("parts", "logs_p", "indexes"),
    rests_on=("indexes",),
)
