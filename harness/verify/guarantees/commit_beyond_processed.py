"""Below a committed position every visible record was processed by the group.

Processing is journaling: what a member was killed with, before it could, it did not commit either.
"""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import DUE, LOSS, Guarantee, place

PASSED = f"""
FROM (SELECT q.p, c.`group` AS grp, MAX(c.offset) AS top, MIN(c.complete_ns) AS at_ns,
        MAX(c.complete_ns) AS until_ns, MAX(q.unclean_on) AS unclean_on,
        MAX(q.unclean_floor) AS unclean_floor, MAX(q.lost_floor) AS lost_floor,
        MAX(q.spoilt_ns) AS spoilt_ns
      FROM commits c JOIN parts q ON q.topic_id = c.topic_id AND q.partition = c.partition
      WHERE c.outcome = 'ok' AND q.compacted = 0 GROUP BY q.p, c.`group`) k
JOIN {DUE} s ON s.p = k.p JOIN grps b ON b.grp = k.grp
WHERE s.off < k.top
  AND NOT EXISTS (SELECT 1 FROM damaged d JOIN members m ON m.client = d.client
                  WHERE (m.bits & b.bit) <> 0)
"""

GUARANTEE = Guarantee(
    name="commit_beyond_processed",
    about="a group committed past a record that none of its members processed",
    promise="A consumer that commits after processing sees every record at least once.",
    source="Kafka documentation, 4.6 Message Delivery Semantics; KafkaConsumer, Manual Offset "
    "Control",
    opportunities=f"SELECT COUNT(*) AS n {PASSED}",
    violations=f"""
SELECT 'not processed' AS sub_kind, s.p, s.off, k.at_ns, k.until_ns, k.grp, s.value_id, k.top,
  k.unclean_on, k.unclean_floor, k.lost_floor, k.spoilt_ns,
  (SELECT MAX(z.commits_before) FROM settings z) AS before
{PASSED} AND (s.grps & b.bit) = 0""",
    permitted="CASE WHEN x.before = 1 THEN 'the group commits before it processes: at most once'"
    f" ELSE {LOSS} END",
    explain=lambda row: (
        f"{row['grp']} committed up to {row['top']}, but no member ever processed "
        f"{row['value_id']} at {place(row)}."
    ),
    needs=("commits", "reads"),
    sub_kinds=("not processed",),
)
