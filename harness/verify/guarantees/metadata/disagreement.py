"""After healing, all sources agree on the leader of a partition, and on the number of in-sync
replicas.

The sources are ZooKeeper, the Metadata responses of each broker, and the leader's own responses.
Changes reach brokers with a delay; on a loaded machine a healthy one took more than six seconds. A
response therefore counts only if it came at least five seconds after a fault was healed and after
the last version of the state was written, before the next version, from a broker that had been
registered for ten seconds. The absence of a broker excuses only responses about partitions that it
led itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.reference import Partition, Row, SmallHistory, Violation

_LONG_NS = 5_000_000_000
_REGISTERED_NS = 10_000_000_000

_UNDISTURBED = f"""
JOIN partitions ON partitions.p = {{0}}.p
JOIN state_spans spans ON spans.p = {{0}}.p AND {{1}} >= spans.begin_ns + {_LONG_NS}
  AND {{2}} < spans.end_ns
WHERE spans.leader >= 0 AND partitions.in_run = 1 AND partitions.gone = 0
  AND {{2}} <= partitions.ends_ns
  AND NOT EXISTS (SELECT 1 FROM windows
                  WHERE windows.begin_ns <= {{2}} AND {{1}} < windows.end_ns + {_LONG_NS}
                    AND COALESCE(windows.ended_broker, {{3}}) IN ({{3}}, spans.leader))
  AND NOT EXISTS (SELECT 1 FROM states WHERE path LIKE '/brokers/ids/%' AND version >= 0
                  AND SUBSTRING(path, 14) = CAST({{3}} AS STRING)
                  AND at_ns <= {{1}} AND {{1}} < at_ns + {_REGISTERED_NS})
"""
_VIEWS = "FROM views " + _UNDISTURBED.format("views", "views.at_ns", "views.at_ns", "views.broker")
_ANSWERS = (
    "FROM answers "
    + _UNDISTURBED.format("answers", "answers.invoke_ns", "answers.complete_ns", "answers.node")
    + " AND answers.kind <> 'producer'"
)
"""Any broker assigns producer ids."""
_DENIED = (
    "(answers.error LIKE '%NOT_LEADER%' OR answers.error LIKE '%NotLeader%' OR answers.error = '6')"
)


def _explain(row: Mapping[str, Any]) -> str:
    where = f"{row['topic']}-{row['partition']}"
    known = f"In ZooKeeper broker {row['leader']} has led {where} for long"
    if row["sub_kind"] == "in sync":
        return (
            f"In ZooKeeper {row['members']} replicas of {where} have been in sync for long, "
            f"but broker {row['node']} reports {row['told']}."
        )
    if row["told"] == row["leader"] and row["sub_kind"] == "metadata":
        epochs = f"broker {row['node']} reports epoch {row['told_epoch']}"
        return f"{known} in epoch {row['leader_epoch']}, but {epochs}."
    epochs = f", in epoch {row['told_epoch']}" if row["told_epoch"] is not None else ""
    if epochs and row["told_epoch"] != row["leader_epoch"]:
        epochs += f" instead of {row['leader_epoch']}"
    statements = {
        "metadata": f"broker {row['node']} reports broker {row['told']} as leader{epochs}",
        "another leads": f"broker {row['node']} answers as its leader",
        "the leader denies": f"broker {row['node']} denies being the leader",
    }
    return f"{known}, but {statements[row['sub_kind']]}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """In undisturbed times every broker reports the leader, the epoch and the number of in-sync
    replicas that ZooKeeper has, the leader answers as leader, and no other broker does."""
    for partition in history.partitions:
        for view in partition.derived_rows("views"):
            reign = _quiet_reign(partition, view.broker, view.at_ns, view.at_ns)
            if reign is None:
                continue
            kind = None
            if (view.leader, view.leader_epoch) != (reign.leader, reign.leader_epoch):
                kind = "metadata"
            elif view.isr_size not in (None, len(json.loads(reign.isr))):
                kind = "in sync"
            if kind:
                yield partition.violation(kind, None, None, view.broker, reign.version)
        for answer in partition.derived_rows("answers"):
            reign = _quiet_reign(partition, answer.node, answer.invoke_ns, answer.complete_ns)
            if reign is None or answer.kind == "producer":
                continue
            error = (answer.error or "").upper().replace("_", "")
            is_denial = "NOTLEADER" in error or error == "6"
            kind = None
            if answer.node == reign.leader and is_denial:
                kind = "the leader denies"
            elif answer.node not in (-1, reign.leader) and answer.error is None:
                kind = "another leads" if answer.kind != "epoch" else None
            if kind:
                yield partition.violation(kind, None, None, answer.node, reign.version)


def _quiet_reign(partition: Partition, node: int, invoke_ns: int, complete_ns: int) -> Row | None:
    """The state that a broker must know at a time; None if it may not know it."""
    if partition.part.gone or not partition.part.in_run or complete_ns > partition.part.ends_ns:
        return None
    for reign, end_ns in partition.reigns:
        faults = [
            fault
            for fault in partition.history.derived_rows("windows")
            if fault.begin_ns <= complete_ns
            and invoke_ns < fault.end_ns + _LONG_NS
            and (fault.ended_broker is None or fault.ended_broker in (node, reign.leader))
        ]
        starts = [
            row
            for row in partition.history.registrations
            if row.path == f"/brokers/ids/{node}"
            and row.version >= 0
            and row.at_ns <= invoke_ns < row.at_ns + _REGISTERED_NS
        ]
        is_known = invoke_ns >= reign.at_ns + _LONG_NS and complete_ns < end_ns
        if is_known and reign.leader >= 0 and not faults and not starts:
            return reign
    return None


GUARANTEE = Guarantee(
    name="disagreement",
    rank=30,
    about="brokers and ZooKeeper disagree long after healing about the leader or the ISR",
    promise="The controller sends every broker each change of leadership and of the in-sync "
    "replicas, and brokers serve only partitions that they lead.",
    source="Kafka documentation, 4.7 Replication; KAFKA-7165, KAFKA-7235",
    sub_kinds={
        "metadata": (
            "a broker's Metadata names another leader or epoch than ZooKeeper, or does not know "
            "the partition"
        ),
        "in sync": "it has another number of in-sync replicas",
        "another leads": "another broker than the leader answers as leader",
        "the leader denies": "the leader answers NOT_LEADER_OR_FOLLOWER",
    },
    details=(
        "Judged from five seconds after the last fault and the last change of the partition's "
        "state on.",
        "Another broker answers as leader, or the leader denies it.",
        "Before 2.7, in-sync replicas are compared from 15 seconds after the last change on: "
        "leaders report changes of the ISR with a delay.",
    ),
    not_counted=(
        "Answers while a fault acts. A crash or shutdown of a broker that is neither queried nor "
        "the leader does not count.",
        "Answers while leadership just changed, and of a broker in its first ten seconds by "
        "ZooKeeper.",
    ),
    opportunities=f"SELECT SUM(opportunities.n) AS n FROM (SELECT COUNT(*) AS n {_VIEWS} "
    f"UNION ALL SELECT COUNT(*) AS n {_ANSWERS}) opportunities",
    violations=f"""
SELECT 'metadata' AS sub_kind, views.p, CAST(NULL AS BIGINT) AS off, MIN(views.at_ns) AS at_ns,
  MAX(views.at_ns) AS until_ns, views.broker AS node, views.leader AS told,
  views.leader_epoch AS told_epoch, spans.leader, spans.leader_epoch, spans.version,
  CAST(NULL AS INT) AS members
{_VIEWS} AND (views.leader <> spans.leader OR views.leader_epoch <> spans.leader_epoch)
GROUP BY views.p, views.broker, views.leader, views.leader_epoch, spans.leader, spans.leader_epoch,
  spans.version
UNION ALL
SELECT 'in sync', views.p, NULL, MIN(views.at_ns), MAX(views.at_ns), views.broker, views.isr_size,
  NULL, spans.leader, spans.leader_epoch, spans.version, spans.isr_size
{_VIEWS} AND views.leader = spans.leader
AND COALESCE(views.leader_epoch, spans.leader_epoch) = spans.leader_epoch
AND views.isr_size <> spans.isr_size
GROUP BY views.p, views.broker, views.isr_size, spans.leader, spans.leader_epoch, spans.version,
  spans.isr_size
UNION ALL
SELECT 'another leads', answers.p, NULL, MIN(answers.invoke_ns), MAX(answers.complete_ns),
  answers.node, answers.node, NULL, spans.leader, spans.leader_epoch, spans.version, NULL
{_ANSWERS} AND answers.error IS NULL AND answers.node >= 0 AND answers.node <> spans.leader
AND answers.kind <> 'epoch'
GROUP BY answers.p, answers.node, spans.leader, spans.leader_epoch, spans.version
UNION ALL
SELECT 'the leader denies', answers.p, NULL, MIN(answers.invoke_ns), MAX(answers.complete_ns),
  answers.node, NULL, NULL, spans.leader, spans.leader_epoch, spans.version, NULL
{_ANSWERS} AND answers.node = spans.leader AND {_DENIED}
GROUP BY answers.p, answers.node, spans.leader, spans.leader_epoch, spans.version""",
    explain=_explain,
    tie="finding.node, finding.version",
    compares_times=True,
    host_load_excuses=True,
    needs=("states",),
    reads=("partitions", "views", "answers", "state_spans", "windows", "states"),
    rests_on=("states", "samples", "offset_answers", "faults"),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.node, violation.version)",
)
