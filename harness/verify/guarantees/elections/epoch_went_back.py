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

_CONTROLLER_EPOCHS = """
(SELECT zxid, at_ns, version, controller_epoch,
   LAG(controller_epoch) OVER (ORDER BY zxid) AS prev_epoch
 FROM states WHERE path = '/controller_epoch' AND controller_epoch IS NOT NULL)
"""


_SLACK_NS = 1_000_000_000
"""The election is at least this much later by ZooKeeper's clock, in addition to its order."""

_DEPOSED = f"""
(SELECT successive_states.topic_id, successive_states.partition, successive_states.at_ns,
   successive_states.controller_epoch, successive_states.version, successive_states.leader,
   MAX(states.controller_epoch) AS newest
 FROM (SELECT states.*, LAG(states.leader_epoch) OVER (PARTITION BY states.topic_id,
     states.partition ORDER BY states.zxid)
         AS prev_epoch FROM states WHERE states.leader_epoch IS NOT NULL) successive_states
 JOIN states ON states.path = '/controller_epoch' AND states.zxid < successive_states.zxid
   AND states.at_ns + {_SLACK_NS} <= successive_states.at_ns
   AND states.controller_epoch > successive_states.controller_epoch
 WHERE successive_states.leader_epoch > successive_states.prev_epoch
 GROUP BY successive_states.topic_id, successive_states.partition, successive_states.at_ns,
   successive_states.controller_epoch, successive_states.version, successive_states.leader)
"""
"""Elections by controllers with an older epoch than the newest one."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "deposed controller":
        return (
            f"{place(row)} got the leader {row['leader']} from the controller of epoch "
            f"{row['became']}, long after one of epoch {row['was']} had been elected."
        )
    where = "/controller_epoch" if row["sub_kind"] == "controller" else place(row)
    return f"The {row['sub_kind']} epoch of {where} went from {row['was']} to {row['became']}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """From one version of a partition's state to the next, no epoch falls, and the version rises.

    Left out: elections by a deposed controller.
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
    opportunities="SELECT COUNT(*) AS n FROM state_spans spans WHERE prev_version IS NOT NULL",
    violations=f"""
SELECT 'leader' AS sub_kind, p, CAST(NULL AS BIGINT) AS off, begin_ns AS at_ns,
  begin_ns AS until_ns, prev_leader_epoch AS was, leader_epoch AS became, version, leader
FROM state_spans spans WHERE leader_epoch < prev_leader_epoch
UNION ALL
SELECT 'partition', p, NULL, begin_ns, begin_ns, prev_version, version, version,
  leader
FROM state_spans spans WHERE version <= prev_version
UNION ALL
SELECT 'controller', p, NULL, begin_ns, begin_ns, prev_controller_epoch,
  controller_epoch, version, leader
FROM state_spans spans WHERE controller_epoch < prev_controller_epoch
UNION ALL
SELECT 'controller', NULL, NULL, at_ns, at_ns, prev_epoch, controller_epoch, version, NULL
FROM {_CONTROLLER_EPOCHS} controller_epochs WHERE controller_epoch < prev_epoch
UNION ALL
SELECT 'deposed controller', partitions.p, NULL, deposed_controllers.at_ns,
  deposed_controllers.at_ns, deposed_controllers.newest, deposed_controllers.controller_epoch,
  deposed_controllers.version, deposed_controllers.leader
FROM {_DEPOSED} deposed_controllers JOIN partitions
  ON partitions.topic_id = deposed_controllers.topic_id
    AND partitions.partition = deposed_controllers.partition""",
    explain=_explain,
    tie="finding.version",
    needs=("states",),
    reads=("partitions", "state_spans", "states"),
    rests_on=("states",),
    reference=_reference,
    reference_covers=("leader", "controller", "partition"),
)
