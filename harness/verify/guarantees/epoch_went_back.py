"""Epochs only rise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place

_OF_CONTROLLER = """
(SELECT t.zxid, t.at_ns, t.version, t.controller_epoch,
   LAG(t.controller_epoch) OVER (ORDER BY t.zxid) AS prev_epoch
 FROM states t WHERE t.path = '/controller_epoch' AND t.controller_epoch IS NOT NULL)
"""


def _explain(row: Mapping[str, Any]) -> str:
    where = "/controller_epoch" if row["sub_kind"] == "controller" else place(row)
    return f"The {row['sub_kind']} epoch of {where} went from {row['was']} to {row['became']}."


GUARANTEE = Guarantee(
    name="epoch_went_back",
    about="a leader, controller or partition epoch decreased",
    promise="Leader epochs, controller epochs and partition epochs increase monotonically, which "
    "is what fences stale leaders and controllers.",
    source="KIP-101; KIP-497; Kafka's ZooKeeper data structures",
    opportunities="SELECT COUNT(*) AS n FROM spans s WHERE s.prev_version IS NOT NULL",
    violations=f"""
SELECT 'leader' AS sub_kind, s.p, CAST(NULL AS BIGINT) AS off, s.begin_ns AS at_ns,
  s.begin_ns AS until_ns, s.prev_leader_epoch AS was, s.leader_epoch AS became, s.version, s.leader
FROM spans s WHERE s.leader_epoch < s.prev_leader_epoch
UNION ALL
SELECT 'partition', s.p, NULL, s.begin_ns, s.begin_ns, s.prev_version, s.version, s.version,
  s.leader
FROM spans s WHERE s.version <= s.prev_version
UNION ALL
SELECT 'controller', s.p, NULL, s.begin_ns, s.begin_ns, s.prev_controller_epoch,
  s.controller_epoch, s.version, s.leader
FROM spans s WHERE s.controller_epoch < s.prev_controller_epoch
UNION ALL
SELECT 'controller', NULL, NULL, c.at_ns, c.at_ns, c.prev_epoch, c.controller_epoch, c.version, NULL
FROM {_OF_CONTROLLER} c WHERE c.controller_epoch < c.prev_epoch""",
    explain=_explain,
    needs=("states",),
    rests_on=("states",),
    sub_kinds=("leader", "controller", "partition"),
    tie="j.version",
)
