"""A reader of a complete compacted topic gets the last value of every key, and the cleaner
removes older ones in time.

`not cleaned` is judged only where max.compaction.lag.ms is set. A value that was overwritten,
and whose successor also lies before the active segment, stays at most that long from the healing
of the last fault on. `tombstone kept`: likewise, a tombstone with no later record of its key is
removed when delete.retention.ms has passed and the log is cleaned once more, as it is while
records arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.guarantees.compaction.keyed_sends import keys_of
from urteil.harness.verify.guarantees.compaction.keys import latest, older
from urteil.harness.verify.guarantees.losses import losable
from urteil.harness.verify.limits import FOREVER_NS
from urteil.harness.verify.reference import SmallHistory, Violation

_SLACK_NS = 15_000_000_000

# Overwritten values that the cleaner had to remove before the end: the FROM and WHERE of a query.
_UNCLEANED_VALUES = f"""
FROM (SELECT keyed.*, LEAD(keyed.off) OVER w AS next_off, LEAD(keyed.complete_ns) OVER w AS next_ns,
        LEAD(keyed.value_id) OVER w AS next_value_id
      FROM keyed WHERE keyed.outcome = 'ok' AND keyed.unresolved = 0 AND keyed.off IS NOT NULL
      WINDOW w AS (PARTITION BY keyed.p, keyed.key ORDER BY keyed.off)) successions JOIN partitions
        ON partitions.p = successions.p
WHERE partitions.max_lag_ns < {FOREVER_NS} AND partitions.clock_moved = 0 AND partitions.trimmed = 0
  AND successions.next_off < partitions.active_base AND successions.off >= partitions.log_start
  AND GREATEST(successions.next_ns, partitions.calm_ns) + partitions.max_lag_ns
  + {_SLACK_NS} < partitions.ends_ns
"""

# Tombstones that the cleaner had to remove before the last write: the FROM and WHERE of a query.
_KEPT_TOMBSTONES = f"""
FROM (SELECT *, MAX(complete_ns) OVER (PARTITION BY p) AS written_ns FROM keyed) writes
JOIN partitions ON partitions.p = writes.p
WHERE writes.outcome = 'ok' AND writes.off = writes.last_off AND writes.open_n = 0
  AND writes.tombstone = 1 AND partitions.max_lag_ns < {FOREVER_NS}
  AND partitions.delete_retention_ns < {FOREVER_NS} AND partitions.clock_moved = 0
  AND partitions.trimmed = 0 AND writes.off < partitions.active_base
  AND writes.off >= partitions.log_start AND GREATEST(writes.complete_ns, partitions.calm_ns)
  + 3 * partitions.max_lag_ns + partitions.delete_retention_ns + {_SLACK_NS}
    < writes.written_ns
"""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "not cleaned":
        return (
            f"{row['value_id']} at {place(row)} is still there, though {row['latest_value_id']} "
            f"at offset {row['latest_off']} overwrote key {row['key']!r} longer ago than "
            "max.compaction.lag.ms allows."
        )
    if row["sub_kind"] == "tombstone kept":
        return (
            f"The tombstone {row['value_id']} at {place(row)} is still there, though it deleted "
            f"key {row['key']!r} longer ago than delete.retention.ms, and the log was to be "
            "cleaned since."
        )
    return (
        f"Key {row['key']!r} shows {row['value_id']} at {place(row)} ({row['sub_kind']}), but "
        f"{row['latest_value_id']} at offset {row['latest_off']} was its last value."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A key shows no older value than its last.

    Left out: how long the cleaner may take.
    """
    for key in keys_of(history):
        for where, send in key.outdated_values(tombstone=False):
            yield key.partition.violation(where, send.offset, send.value_id)


GUARANTEE = Guarantee(
    name="stale_value_visible",
    rank=20,
    about="a key shows an older value than its last, or an overwritten one is never cleaned",
    promise="Any consumer that reads from the start of the log will see at least the final state "
    "of all records in the order they were written; max.compaction.lag.ms bounds how long a "
    "record stays ineligible for compaction; tombstones are cleared out of the log after "
    "delete.retention.ms.",
    source="Kafka documentation, 4.8 Log Compaction; KIP-354; KIP-534; KAFKA-5413",
    sub_kinds={
        "in the log": "in the final leader's log",
        "in a pass": "in a complete final pass",
        "not cleaned": "an overwritten value stays longer than max.compaction.lag.ms",
        "tombstone kept": (
            "a tombstone before the active segment stays longer than delete.retention.ms, three "
            "times that lag and 15 s, while records arrive"
        ),
    },
    details=(
        "A key is judged when all its sends are resolved: acknowledged with an offset, or "
        "certainly failed. Its last record has the highest offset.",
        "`in the log`, `in a pass`: a key shows an older value than its last.",
    ),
    not_counted=(
        "`not cleaned` and `tombstone kept` in topics without max.compaction.lag.ms.",
        "`not cleaned`: the active segment, 15 s from the last healing on, and successors in "
        "transactions without an acknowledged commit.",
    ),
    occasion=Occasion.COMPACTION,
    opportunities=f"SELECT COALESCE(SUM(opportunities.n), 0) AS n FROM ({latest(0)} "
    f"UNION ALL SELECT COUNT(*) AS n {_UNCLEANED_VALUES} "
    f"UNION ALL SELECT COUNT(*) AS n {_KEPT_TOMBSTONES}) opportunities",
    violations=f"""
{older(0)}
UNION ALL
SELECT 'not cleaned', successions.p, successions.off, successions.next_ns, successions.next_ns,
  successions.value_id, successions.key, successions.next_value_id, successions.next_off, -1,
  successions.n_reads, 0, 0, 0, CAST(NULL AS BIGINT) {_UNCLEANED_VALUES}
  AND successions.log_slots > 0
UNION ALL
SELECT 'tombstone kept', writes.p, writes.off, writes.complete_ns, writes.complete_ns,
  writes.value_id, writes.key, writes.value_id,
  writes.off, -1, writes.n_reads, 0, 0, 0, CAST(NULL AS BIGINT) {_KEPT_TOMBSTONES}
  AND writes.log_slots > 0""",
    excuses=losable("violation.latest_off"),
    explain=_explain,
    compares_times=True,
    reads=(
        *("keyed", "partitions", "floors", "damaged", "reads", "passes", "partitions.calm_ns"),
        *("partitions.clock_moved", "partitions.trimmed"),
        *("partitions.lost_floor", "partitions.unclean_on"),
    ),
    subjects=("partitions.compacted",),
    reference=_reference,
    reference_covers=(
        "in the log",
        "in a pass",
    ),
)
