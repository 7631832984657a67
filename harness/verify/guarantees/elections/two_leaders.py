"""One broker leads in one epoch: each change of leader raises the epoch, and only the leader
acknowledges.

Acknowledgements count for sends with a single attempt and records that all replicas hold in one
epoch: a later leader may acknowledge a repeated send as the duplicate that it is.

`deposed`: a leader replaced in ZooKeeper's state learns it soon if no fault acts, so it is
judged by records sent five seconds later. `knew better`: a broker acknowledged although it had
itself reported another leader; judged by records sent half a second later, since in KRaft mode a
broker reports a new leader before it stops to lead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import EPOCH, Guarantee, place, union
from urteil.harness.verify.limits import CLOCK_SLACK_NS
from urteil.harness.verify.reference import (
    Row,
    SmallHistory,
    Violation,
    acknowledged_offset,
    place_of,
    places_of,
)

_LONG_NS = 5_000_000_000
_SOON_NS = 500_000_000
_ANSWERED = "v.outcome = 'ok' AND v.at_ack = 1 AND v.attempts = 1 AND v.node IS NOT NULL"
_JUDGED = f"""
FROM kinds v JOIN (SELECT s.p, s.leader_epoch, MIN(s.leader) AS leader FROM spans s
                   WHERE s.leader >= 0 GROUP BY s.p, s.leader_epoch
                   HAVING MIN(s.leader) = MAX(s.leader)) e
  ON e.p = v.sent_p AND e.leader_epoch = v.epoch
WHERE {_ANSWERED}
"""
_WRONG = f"""
SELECT DISTINCT v.sent_p AS p, v.node, e.leader, e.leader_epoch {_JUDGED} AND v.node <> e.leader
"""
_SEVERAL = f"""
SELECT v.sent_p AS p, v.epoch FROM kinds v WHERE {_ANSWERED} AND v.epoch >= 0
GROUP BY v.sent_p, v.epoch HAVING MIN(v.node) <> MAX(v.node)
"""
_REIGNS = """
SELECT s.p, s.leader, s.leader_epoch, MIN(s.begin_ns) AS begin_ns, MAX(s.end_ns) AS end_ns
FROM spans s WHERE s.leader >= 0 GROUP BY s.p, s.leader, s.leader_epoch
"""

_NOT_THE_LEADER = f"""
SELECT 'not the leader' AS sub_kind, v.sent_p AS p, v.ack_off AS off, v.invoke_ns AS at_ns,
  v.complete_ns AS until_ns, v.value_id, v.client, v.node, e.leader, e.leader_epoch
FROM vals v JOIN ({_WRONG}) e
  ON e.p = v.sent_p AND e.leader_epoch = v.ident DIV {EPOCH} AND e.node = v.node
WHERE {_ANSWERED}"""
"""Acknowledgements by a broker that did not lead in the epoch of the record."""

_TWO_IN_ONE_EPOCH = """
SELECT 'two in one epoch', s.p, NULL, MIN(s.begin_ns), MAX(s.begin_ns), NULL, NULL, MAX(s.leader),
  MIN(s.leader), s.leader_epoch
FROM spans s WHERE s.leader >= 0 GROUP BY s.p, s.leader_epoch
HAVING MIN(s.leader) <> MAX(s.leader)"""
"""Epochs for which ZooKeeper's state names two leaders."""

_TWO_ACKNOWLEDGED = f"""
SELECT 'two acknowledged', v.sent_p, NULL, MIN(v.invoke_ns), MAX(v.complete_ns), MIN(v.value_id),
  NULL, MAX(v.node), MIN(v.node), v.ident DIV {EPOCH}
FROM vals v JOIN ({_SEVERAL}) e ON e.p = v.sent_p AND e.epoch = v.ident DIV {EPOCH}
WHERE {_ANSWERED} GROUP BY v.sent_p, v.ident DIV {EPOCH}"""
"""Epochs in which two brokers acknowledged records."""

_KNEW_BETTER = f"""
SELECT 'knew better', v.sent_p, v.ack_off, v.invoke_ns, v.complete_ns, v.value_id, v.client,
  v.node, MIN(w.leader), MIN(w.leader_epoch)
FROM vals v JOIN views w ON w.p = v.sent_p AND w.broker = v.node AND w.leader <> v.node
  AND w.leader >= 0 AND w.at_ns + {_SOON_NS} < v.invoke_ns
WHERE v.outcome = 'ok' AND v.acks <> 0 AND v.attempts = 1
  AND NOT EXISTS (SELECT 1 FROM spans s WHERE s.p = v.sent_p AND s.leader = v.node
                  AND s.leader_epoch > w.leader_epoch
                  AND s.begin_ns - {CLOCK_SLACK_NS} <= v.complete_ns)
GROUP BY v.sent_p, v.ack_off, v.invoke_ns, v.complete_ns, v.value_id, v.client, v.node"""
"""Acknowledgements by a broker that had reported another leader before."""

_DEPOSED = f"""
SELECT 'deposed', v.sent_p, v.ack_off, v.invoke_ns, v.complete_ns, v.value_id, v.client, v.node,
  s.leader, s.leader_epoch
FROM vals v JOIN ({_REIGNS}) s ON s.p = v.sent_p AND s.leader <> v.node
  AND s.begin_ns + {_LONG_NS} <= v.invoke_ns AND v.complete_ns < s.end_ns
WHERE v.outcome = 'ok' AND v.acks <> 0 AND v.attempts = 1
  AND NOT EXISTS (SELECT 1 FROM windows w WHERE w.begin_ns <= v.complete_ns
                  AND v.invoke_ns < w.end_ns + {_LONG_NS})"""
"""Acknowledgements long after another broker had become leader, without a fault."""


def _explain(row: Mapping[str, Any]) -> str:
    epoch = row["leader_epoch"]
    if row["sub_kind"] == "knew better":
        return (
            f"Broker {row['node']} acknowledged {row['value_id']} at {place(row)}, though it had "
            f"said before that broker {row['leader']} leads in epoch {epoch}."
        )
    if row["sub_kind"] == "deposed":
        return (
            f"Broker {row['node']} acknowledged {row['value_id']} at {place(row)}, though by "
            f"ZooKeeper's state broker {row['leader']} had led in epoch {epoch} for five seconds "
            "and more, with no fault at work."
        )
    if row["sub_kind"] in ("two in one epoch", "two acknowledged"):
        return f"Brokers {row['leader']} and {row['node']} both led {place(row)} in epoch {epoch}."
    return (
        f"Broker {row['node']} acknowledged {row['value_id']} at {place(row)}, which was written "
        f"in epoch {epoch}, in which broker {row['leader']} led."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """One broker leads in an epoch, and it alone acknowledges records of that epoch.

    Left out: what brokers report about leaders, and acknowledgements long after an election.
    """
    for partition in history.partitions:
        led: dict[int, set[int]] = {}
        for state in partition.versions:
            if state.leader >= 0:
                led.setdefault(state.leader_epoch, set()).add(state.leader)
        yield from (partition.violation("two in one epoch") for one in led.values() if len(one) > 1)
        acked: dict[int, list[Row]] = {}
        for send in partition.sends:
            offset = acknowledged_offset(send)
            records = history.records_of[send.value_id]
            is_at_ack = (partition.topic, partition.partition, offset) in places_of(records)
            epoch = _epoch_of(history, records)
            if is_at_ack and send.attempts == 1 and send.node is not None and epoch is not None:
                acked.setdefault(epoch, []).append(send)
                if len(led.get(epoch, ())) == 1 and send.node not in led[epoch]:
                    yield partition.violation("not the leader", offset, send.value_id)
        for sends in acked.values():
            if len({send.node for send in sends}) > 1:
                value = min(send.value_id for send in sends)
                yield partition.violation("two acknowledged", None, value)


def _epoch_of(history: SmallHistory, records: list[Row]) -> int | None:
    """The last epoch that all copies of a record at one place have."""
    found: list[int] = []
    for record in records:
        copies = history.copies_of[record.value_id]
        epochs = {row.leader_epoch for row in copies if place_of(row) == place_of(record)}
        found += epochs if len(epochs) == 1 else ()
    return max(found, default=None)


GUARANTEE = Guarantee(
    name="two_leaders",
    rank=20,
    about="a broker acknowledged in an epoch in which another broker led",
    promise="Each partition has one leader at a time; requests under an older leader epoch are "
    "fenced.",
    source="Kafka documentation, 4.7 Replication; KIP-101, KIP-320",
    sub_kinds={
        "not the leader": "a broker acknowledged a record of an epoch that another broker led",
        "two in one epoch": "two led in it, by ZooKeeper's state",
        "two acknowledged": "two brokers acknowledged in one epoch",
        "knew better": (
            "a broker acknowledged a record that was sent half a second or more after it had "
            "named another leader itself"
        ),
        "deposed": (
            "a broker acknowledged a record that was sent five seconds or more after ZooKeeper's "
            "state named another leader, and after every fault"
        ),
    },
    not_counted=(
        "Sends with more than one attempt: a later leader may acknowledge a duplicate.",
        "Of acknowledgements in an epoch, records that replicas have in several "
        "(`replica_divergence`).",
    ),
    opportunities=f"SELECT COALESCE(SUM(v.n), 0) AS n {_JUDGED}",
    violations=union(_NOT_THE_LEADER, _TWO_IN_ONE_EPOCH, _TWO_ACKNOWLEDGED, _KNEW_BETTER, _DEPOSED),
    explain=_explain,
    tie="j.value_id, j.leader_epoch",
    compares_times=True,
    needs=("sends", "replicas", "states"),
    reads=("vals", "kinds", "views", "spans", "windows"),
    rests_on=("sends", "replicas", "states", "samples", "faults"),
    reference=_reference,
    reference_covers=("not the leader", "two in one epoch", "two acknowledged"),
)
