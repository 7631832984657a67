"""The generations of a group only rise, as one member hears of them.

A generation is on every replica in sync before its members are told of it, so that the next
coordinator goes on from there. Only what one session of a client was told is compared: others may
hear late of a generation that is over. Who joins anew joins a later one.
"""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.guarantees.two_owners import LOST_OFFSETS

_TOLD = """
SELECT g.*, MAX(g.generation) OVER (PARTITION BY g.client, g.session ORDER BY g.at_ns
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
FROM (SELECT a.`group` AS grp, a.client, a.session, a.generation, a.at_ns, MIN(q.p) AS p
      FROM assignments a JOIN parts q ON q.topic_id = a.topic_id AND q.partition = a.partition
      WHERE a.event = 'assigned' AND a.generation >= 0
      GROUP BY a.`group`, a.client, a.session, a.generation, a.at_ns) g
"""

GUARANTEE = Guarantee(
    name="generation_went_back",
    about="a group's generation fell: its coordinator had forgotten it",
    promise="The group's metadata, its generation with it, is written to the offsets topic, from "
    "which a new coordinator takes it over.",
    source="KIP-62; GroupMetadataManager.storeGroup, loadGroupsAndOffsets",
    opportunities=f"SELECT COUNT(*) AS n FROM ({_TOLD}) t WHERE t.before IS NOT NULL",
    violations=f"""
SELECT 'fell' AS sub_kind, t.p, CAST(NULL AS BIGINT) AS off, t.at_ns, t.at_ns AS until_ns, t.grp,
  t.client, t.session, t.generation, t.before
FROM ({_TOLD}) t WHERE t.before > t.generation""",
    permitted=LOST_OFFSETS,
    explain=lambda row: (
        f"{row['client']} was in generation {row['before']} of {row['grp']}, and was given its "
        f"partitions in generation {row['generation']} then."
    ),
    needs=("assignments",),
    rests_on=("assignments",),
    sub_kinds=("fell",),
    tie="j.client, j.session",
)
