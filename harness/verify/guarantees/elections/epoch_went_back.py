"""Epochs only rise, and a former controller elects no leader once a newer controller exists.

Each write of a controller is one transaction that checks `/controller_epoch`. Only elections are
judged: before KIP-497 leaders wrote their ISR themselves, with the controller epoch that they
had last received."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.reference import SmallHistory, Violation

_OF_CONTROLLER = """
(SELECT t.zxid, t.at_ns, t.version, t.controller_epoch,
   LAG(t.controller_epoch) OVER (ORDER BY t.zxid) AS prev_epoch
 FROM states t WHERE t.path = '/controller_epoch' AND t.controller_epoch IS NOT NULL)
"""


_SLACK_NS = 1_000_000_000
"""So much later at least, beside ZooKeeper's own order."""

_DEPOSED = f"""
(SELECT e.topic_id, e.partition, e.at_ns, e.controller_epoch, e.version, e.leader,
   MAX(c.controller_epoch) AS newest
 FROM (SELECT t.*, LAG(t.leader_epoch) OVER (PARTITION BY t.topic_id, t.partition ORDER BY t.zxid)
         AS prev_epoch FROM states t WHERE t.leader_epoch IS NOT NULL) e
 JOIN states c ON c.path = '/controller_epoch' AND c.zxid < e.zxid
   AND c.at_ns + {_SLACK_NS} <= e.at_ns AND c.controller_epoch > e.controller_epoch
 WHERE e.leader_epoch > e.prev_epoch
 GROUP BY e.topic_id, e.partition, e.at_ns, e.controller_epoch, e.version, e.leader)
"""
"""Elections by controllers of an older epoch than the one that there was."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "deposed controller":
        return (
            f"{place(row)} was given the leader {row['leader']} by the controller of epoch "
            f"{row['became']}, long after one of epoch {row['was']} had been elected."
        )
    where = "/controller_epoch" if row["sub_kind"] == "controller" else place(row)
    return f"The {row['sub_kind']} epoch of {where} went from {row['was']} to {row['became']}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """From one version of a partition's state to the next, no epoch falls, and the version rises.

    Left out: elections by a controller that another one had replaced.
    """
    for partition in history.partitions:
        for before, state in pairwise(partition.versions):
            if state.leader_epoch < before.leader_epoch:
                yield partition.violation("leader")
            if state.controller_epoch < before.controller_epoch:
                yield partition.violation("controller")
            if state.version <= before.version:
                yield partition.violation("partition")


GUARANTEE = Guarantee(
    name="epoch_went_back",
    rank=40,
    about="a leader, controller or partition epoch decreased, or a deposed controller elected",
    promise="Leader epochs, controller epochs and partition epochs increase monotonically, which "
    "is what fences stale leaders and controllers.",
    source="KIP-101; KIP-497; Kafka's ZooKeeper data structures",
    sub_kinds={
        "leader": "the leader epoch of a partition decreased",
        "controller": "the controller epoch decreased",
        "partition": "the version of a partition's state did not increase",
        "deposed controller": "a controller elected a leader after another had replaced it",
    },
    details=(
        "A leader, controller or partition epoch fell from one version to the next, or a "
        "partition epoch did not rise.",
        "Or a leader's epoch began under a controller although a newer one had been elected, by "
        "ZooKeeper's order and by its clock a second before.",
    ),
    not_counted=("Changes of the ISR alone, which leaders wrote themselves before KIP-497.",),
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
FROM {_OF_CONTROLLER} c WHERE c.controller_epoch < c.prev_epoch
UNION ALL
SELECT 'deposed controller', q.p, NULL, d.at_ns, d.at_ns, d.newest, d.controller_epoch, d.version,
  d.leader
FROM {_DEPOSED} d JOIN parts q ON q.topic_id = d.topic_id AND q.partition = d.partition""",
    explain=_explain,
    tie="j.version",
    needs=("states",),
    reads=("parts", "spans", "states"),
    rests_on=("states",),
    reference=_reference,
    reference_covers=("leader", "controller", "partition"),
)
