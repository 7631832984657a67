"""After healing, all sources agree on who leads a partition and on how many replicas are in
sync.

The sources are ZooKeeper, the Metadata responses of each broker, and the leader's own responses.

Brokers learn of changes with a delay; on a loaded machine a healthy one took more than six
seconds. A response therefore counts only if it came at least five seconds after a fault was
healed and after the last version of the state was written, before the next version, from a
broker that had been registered for ten seconds. The absence of a broker excuses only news about
partitions that it led itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee

_LONG_NS = 5_000_000_000
_HEARD_NS = 10_000_000_000

_CALM = f"""
JOIN parts q ON q.p = {{0}}.p
JOIN spans s ON s.p = {{0}}.p AND {{1}} >= s.begin_ns + {_LONG_NS} AND {{2}} < s.end_ns
WHERE s.leader >= 0 AND q.ours = 1 AND q.gone = 0 AND {{2}} <= q.ends_ns
  AND NOT EXISTS (SELECT 1 FROM windows f
                  WHERE f.begin_ns <= {{2}} AND {{1}} < f.end_ns + {_LONG_NS}
                    AND COALESCE(f.away, {{3}}) IN ({{3}}, s.leader))
  AND NOT EXISTS (SELECT 1 FROM states b WHERE b.path LIKE '/brokers/ids/%' AND b.version >= 0
                  AND SUBSTRING(b.path, 14) = CAST({{3}} AS STRING)
                  AND b.at_ns <= {{1}} AND {{1}} < b.at_ns + {_HEARD_NS})
"""
_VIEWS = "FROM views w " + _CALM.format("w", "w.at_ns", "w.at_ns", "w.broker")
_ANSWERS = (
    "FROM answers a "
    + _CALM.format("a", "a.invoke_ns", "a.complete_ns", "a.node")
    + " AND a.kind <> 'producer'"
)
"""Ids of producers anybody gives."""
_DENIED = "(a.error LIKE '%NOT_LEADER%' OR a.error LIKE '%NotLeader%' OR a.error = '6')"


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
    ),
    not_counted=(
        "Answers while a fault acts. A crash or shutdown of a broker that is neither queried nor "
        "the leader does not count.",
        "Answers while leadership just changed, and of a broker in its first ten seconds by "
        "ZooKeeper.",
    ),
    opportunities=f"SELECT SUM(u.n) AS n FROM (SELECT COUNT(*) AS n {_VIEWS} "
    f"UNION ALL SELECT COUNT(*) AS n {_ANSWERS}) u",
    violations=f"""
SELECT 'metadata' AS sub_kind, w.p, CAST(NULL AS BIGINT) AS off, MIN(w.at_ns) AS at_ns,
  MAX(w.at_ns) AS until_ns, w.broker AS node, w.leader AS told, w.leader_epoch AS told_epoch,
  s.leader, s.leader_epoch, s.version, CAST(NULL AS INT) AS members
{_VIEWS} AND (w.leader <> s.leader OR w.leader_epoch <> s.leader_epoch)
GROUP BY w.p, w.broker, w.leader, w.leader_epoch, s.leader, s.leader_epoch, s.version
UNION ALL
SELECT 'in sync', w.p, NULL, MIN(w.at_ns), MAX(w.at_ns), w.broker, w.isr_size, NULL,
  s.leader, s.leader_epoch, s.version, s.isr_size
{_VIEWS} AND w.leader = s.leader AND COALESCE(w.leader_epoch, s.leader_epoch) = s.leader_epoch
  AND w.isr_size <> s.isr_size
GROUP BY w.p, w.broker, w.isr_size, s.leader, s.leader_epoch, s.version, s.isr_size
UNION ALL
SELECT 'another leads', a.p, NULL, MIN(a.invoke_ns), MAX(a.complete_ns), a.node, a.node, NULL,
  s.leader, s.leader_epoch, s.version, NULL
{_ANSWERS} AND a.error IS NULL AND a.node >= 0 AND a.node <> s.leader AND a.kind <> 'epoch'
GROUP BY a.p, a.node, s.leader, s.leader_epoch, s.version
UNION ALL
SELECT 'the leader denies', a.p, NULL, MIN(a.invoke_ns), MAX(a.complete_ns), a.node, NULL, NULL,
  s.leader, s.leader_epoch, s.version, NULL
{_ANSWERS} AND a.node = s.leader AND {_DENIED}
GROUP BY a.p, a.node, s.leader, s.leader_epoch, s.version""",
    explain=_explain,
    tie="j.node, j.version",
    compares_times=True,
    host_load_excuses=True,
    needs=("states",),
    reads=("parts", "views", "answers", "spans", "windows", "states"),
    rests_on=("states", "samples", "offset_answers", "faults"),
)
