"""A leader epoch starts at one offset, on every replica that knows it.

Left out: compacted topics, and starts that lie at a log's own start, where deletion moves them.
"""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Guarantee, place

_JUDGED = """
FROM epochs e JOIN parts q ON q.p = e.p WHERE q.compacted = 0 AND e.start > e.log_start
"""

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
{_JUDGED} GROUP BY e.p, e.epoch HAVING MIN(e.start) <> MAX(e.start)""",
    explain=lambda row: (
        f"Leader epoch {row['leader_epoch']} starts at {place(row)} on one replica and at "
        f"{row['other_off']} on another."
    ),
    needs=("logs",),
    sub_kinds=("two starts",),
    tie="j.leader_epoch",
)
