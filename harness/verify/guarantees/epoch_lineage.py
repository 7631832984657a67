"""A leader epoch starts at one offset, on every replica that knows it.

Left out: compacted topics, and starts that lie at a log's own start, where deletion moves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place

_JUDGED = """
FROM epochs e JOIN parts q ON q.p = e.p WHERE q.compacted = 0 AND e.start > e.log_start
"""
_USED = """
(SELECT u.p, u.broker, u.epoch, u.start,
   COALESCE(LEAD(u.start) OVER (PARTITION BY u.p, u.broker ORDER BY u.epoch), m.log_end)
     AS next_start
 FROM epochs u JOIN logs_p m ON m.p = u.p AND m.broker = u.broker)
"""
"""Epochs by the logs that know them, each with the end of what it wrote there."""


def _explain(row: Mapping[str, Any]) -> str:
    epoch = row["leader_epoch"]
    if row["sub_kind"] == "forgotten":
        return (
            f"Leader epoch {epoch} starts at {place(row)}, but broker {row['other_off']}, whose "
            "log holds that offset, knows nothing of it."
        )
    return (
        f"Leader epoch {epoch} starts at {place(row)} on one replica and at "
        f"{row['other_off']} on another."
    )


GUARANTEE = Guarantee(
    name="epoch_lineage",
    about="one leader epoch starts at two offsets",
    promise="The leader epoch sequence file maps each leader epoch to the offset at which it "
    "began, and replicas agree on this lineage.",
    source="KIP-101; KIP-279",
    opportunities=f"SELECT COUNT(*) AS n FROM (SELECT e.p, e.epoch {_JUDGED} "
    "GROUP BY e.p, e.epoch HAVING COUNT(*) > 1) k",
    violations=f"""
SELECT 'two starts' AS sub_kind, e.p, MIN(e.start) AS off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, e.epoch AS leader_epoch, MAX(e.start) AS other_off
{_JUDGED} GROUP BY e.p, e.epoch HAVING MIN(e.start) <> MAX(e.start)
UNION ALL
SELECT 'forgotten', k.p, MIN(k.start), NULL, NULL, k.epoch, l.broker
FROM {_USED} k JOIN parts q ON q.p = k.p AND q.compacted = 0
  AND k.start < q.committed_end AND k.start < q.agreed_end
JOIN logs_p l ON l.p = k.p AND l.log_start <= k.start AND l.log_end > k.start
LEFT JOIN epochs x ON x.p = l.p AND x.broker = l.broker AND x.epoch = k.epoch
WHERE k.next_start > k.start AND x.p IS NULL GROUP BY k.p, k.epoch, l.broker""",
    explain=_explain,
    needs=("logs",),
    rests_on=("logs",),
    sub_kinds=("two starts", "forgotten"),
    tie="j.leader_epoch, j.other_off",
)
