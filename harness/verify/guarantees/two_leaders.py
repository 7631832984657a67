"""One broker leads in one epoch: every change of leader raises it, and nobody else acknowledges.

Of acknowledgements, those of sends with a single attempt count: a repeated one may be acknowledged
by a later leader as the duplicate that it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import EPOCH, Guarantee, place

_JUDGED = f"""
FROM vals v JOIN (SELECT s.p, s.leader_epoch, MIN(s.leader) AS leader FROM spans s
                  WHERE s.leader >= 0 GROUP BY s.p, s.leader_epoch
                  HAVING MIN(s.leader) = MAX(s.leader)) e
  ON e.p = v.sent_p AND e.leader_epoch = v.ident DIV {EPOCH}
WHERE v.outcome = 'ok' AND v.at_ack = 1 AND v.attempts = 1 AND v.node IS NOT NULL
"""


def _explain(row: Mapping[str, Any]) -> str:
    epoch = row["leader_epoch"]
    if row["sub_kind"] == "two in one epoch":
        return f"Brokers {row['leader']} and {row['node']} both led {place(row)} in epoch {epoch}."
    return (
        f"Broker {row['node']} acknowledged {row['value_id']} at {place(row)}, which was written "
        f"in epoch {epoch}, in which broker {row['leader']} led."
    )


GUARANTEE = Guarantee(
    name="two_leaders",
    about="a broker acknowledged in an epoch in which another one led",
    promise="Each partition has one leader at a time; requests under an older leader epoch are "
    "fenced.",
    source="Kafka documentation, 4.7 Replication; KIP-101, KIP-320",
    opportunities=f"SELECT COUNT(*) AS n {_JUDGED}",
    violations=f"""
SELECT 'not the leader' AS sub_kind, v.sent_p AS p, v.ack_off AS off, v.invoke_ns AS at_ns,
  v.complete_ns AS until_ns, v.value_id, v.client, v.node, e.leader, e.leader_epoch
{_JUDGED} AND v.node <> e.leader
UNION ALL
SELECT 'two in one epoch', s.p, NULL, MIN(s.begin_ns), MAX(s.begin_ns), NULL, NULL, MAX(s.leader),
  MIN(s.leader), s.leader_epoch
FROM spans s WHERE s.leader >= 0 GROUP BY s.p, s.leader_epoch
HAVING MIN(s.leader) <> MAX(s.leader)""",
    explain=_explain,
    needs=("sends", "replicas", "states"),
    sub_kinds=("not the leader", "two in one epoch"),
    tie="j.value_id, j.leader_epoch",
)
