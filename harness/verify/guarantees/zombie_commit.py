"""A commit of an older generation is refused.

A generation is known to be over once a member was given its partitions in a later one. Where
members of the older one were told of theirs after that, the group began anew and nothing is said.
"""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.guarantees.two_owners import LOST_OFFSETS

LATE = """
FROM commits c
JOIN (SELECT s.grp, s.generation, s.last_ns, MIN(l.first_ns) AS next_ns,
        MIN(l.generation) AS next_generation
      FROM (SELECT a.`group` AS grp, a.generation, MAX(a.at_ns) AS last_ns FROM assignments a
            WHERE a.event = 'assigned' AND a.generation >= 0 GROUP BY a.`group`, a.generation) s
      JOIN (SELECT a.`group` AS grp, a.generation, MIN(a.at_ns) AS first_ns FROM assignments a
            WHERE a.event = 'assigned' AND a.generation >= 0 GROUP BY a.`group`, a.generation) l
        ON l.grp = s.grp AND l.generation > s.generation
      GROUP BY s.grp, s.generation, s.last_ns) g
  ON g.grp = c.`group` AND g.generation = c.generation AND g.last_ns < g.next_ns
JOIN parts q ON q.topic_id = c.topic_id AND q.partition = c.partition
WHERE c.invoke_ns > g.next_ns
"""

GUARANTEE = Guarantee(
    name="zombie_commit",
    about="a commit of an older generation was accepted",
    promise="If a consumer that has been kicked out of its group commits, the commit fails.",
    source="KafkaConsumer, Detecting Consumer Failures; KIP-62; GroupCoordinator.doCommitOffsets",
    opportunities=f"SELECT COUNT(*) AS n {LATE}",
    violations=f"""
SELECT 'accepted' AS sub_kind, q.p, c.offset AS off, c.invoke_ns AS at_ns,
  c.complete_ns AS until_ns, c.`group` AS grp, c.client, c.session, c.generation, c.member_id,
  g.next_generation
{LATE} AND c.outcome = 'ok'""",
    permitted=LOST_OFFSETS,
    explain=lambda row: (
        f"{row['client']} committed {place(row)} for {row['grp']} in generation "
        f"{row['generation']} and was acknowledged, though generation {row['next_generation']} "
        "had its partitions already."
    ),
    needs=("commits", "assignments"),
    sub_kinds=("accepted",),
    tie="j.client",
)
