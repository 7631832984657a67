"""One broker leads in one epoch: each change of leader raises the epoch, and only the leader
acknowledges.

Acknowledgements count for sends with a single attempt and records that all replicas hold in one
epoch: a later leader may acknowledge a repeated send as a duplicate.

`deposed`: if no fault acts, a leader that was replaced in ZooKeeper's state is informed soon, so it
is judged by records sent five seconds later. `knew better`: a broker acknowledged although it had
itself reported another leader; judged by records sent half a second later, since in KRaft mode a
broker reports a new leader before it stops leading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import LEADER_EPOCHS
from urteil.harness.verify.guarantees.base import Guarantee, place, union
from urteil.harness.verify.limits import CLOCK_SLACK_NS, epoch_of
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
_ANSWERED = (
    "records.outcome = 'ok' AND records.at_ack = 1 AND records.attempts = 1 "
    "AND records.node IS NOT NULL"
)
_JUDGED = f"""
FROM record_counts records JOIN (SELECT spans.p, spans.leader_epoch, MIN(spans.leader) AS leader
                                   FROM state_spans spans
                   WHERE spans.leader >= 0 GROUP BY spans.p, spans.leader_epoch
                   HAVING MIN(spans.leader) = MAX(spans.leader)) epoch_leaders
  ON epoch_leaders.p = records.sent_p AND epoch_leaders.leader_epoch = records.epoch
WHERE {_ANSWERED}
"""
_WRONG = f"""
SELECT DISTINCT records.sent_p AS p, records.node, epoch_leaders.leader,
  epoch_leaders.leader_epoch {_JUDGED} AND records.node <> epoch_leaders.leader
"""
_SEVERAL = f"""
SELECT records.sent_p AS p, records.epoch FROM record_counts records WHERE {_ANSWERED}
  AND records.epoch >= 0
GROUP BY records.sent_p, records.epoch HAVING MIN(records.node) <> MAX(records.node)
"""
_REIGNS = """
SELECT spans.p, spans.leader, spans.leader_epoch, MIN(spans.begin_ns) AS begin_ns,
  MAX(spans.end_ns) AS end_ns
FROM state_spans spans WHERE spans.leader >= 0 GROUP BY spans.p, spans.leader, spans.leader_epoch
"""

_NOT_THE_LEADER = f"""
SELECT 'not the leader' AS sub_kind, records.sent_p AS p, records.ack_off AS off,
  records.invoke_ns AS at_ns, records.complete_ns AS until_ns, records.value_id, records.client,
  records.node, wrong_leaders.leader, wrong_leaders.leader_epoch
FROM records JOIN ({_WRONG}) wrong_leaders
  ON wrong_leaders.p = records.sent_p AND wrong_leaders.leader_epoch = {epoch_of("records.ident")}
    AND wrong_leaders.node = records.node
WHERE {_ANSWERED}"""
"""Acknowledgements by a broker that did not lead in the epoch of the record."""

_TWO_IN_ONE_EPOCH = """
SELECT 'two in one epoch', p, NULL, MIN(begin_ns), MAX(begin_ns), NULL, NULL, MAX(leader),
  MIN(leader), leader_epoch
FROM state_spans spans WHERE leader >= 0 GROUP BY p, leader_epoch
HAVING MIN(leader) <> MAX(leader)"""
"""Epochs for which ZooKeeper's state names two leaders."""

_TWO_ACKNOWLEDGED = f"""
SELECT 'two acknowledged', records.sent_p, NULL, MIN(records.invoke_ns), MAX(records.complete_ns),
  MIN(records.value_id), NULL, MAX(records.node), MIN(records.node), rival_leaders.epoch
FROM records JOIN ({_SEVERAL}) rival_leaders ON rival_leaders.p = records.sent_p
  AND rival_leaders.epoch = {epoch_of("records.ident")}
WHERE {_ANSWERED} GROUP BY records.sent_p, rival_leaders.epoch"""
"""Epochs in which two brokers acknowledged records."""

_KNEW_BETTER = f"""
SELECT 'knew better', records.sent_p, records.ack_off, records.invoke_ns, records.complete_ns,
  records.value_id, records.client, records.node, MIN(views.leader), MIN(views.leader_epoch)
FROM records JOIN views ON views.p = records.sent_p AND views.broker = records.node
  AND views.leader <> records.node AND views.leader >= 0 AND views.leader_epoch IS NOT NULL
  AND views.at_ns + {_SOON_NS} < records.invoke_ns
WHERE records.outcome = 'ok' AND records.acks <> 0 AND records.attempts = 1
  AND NOT EXISTS (SELECT 1 FROM state_spans spans WHERE spans.p = records.sent_p
                    AND spans.leader = records.node
                  AND spans.leader_epoch > views.leader_epoch
                  AND spans.begin_ns - {CLOCK_SLACK_NS} <= records.complete_ns)
GROUP BY records.sent_p, records.ack_off, records.invoke_ns, records.complete_ns, records.value_id,
  records.client, records.node"""
"""Acknowledgements by a broker that had reported another leader before."""

_DEPOSED = f"""
SELECT 'deposed', records.sent_p, records.ack_off, records.invoke_ns, records.complete_ns,
  records.value_id, records.client, records.node, reigns.leader, reigns.leader_epoch
FROM records JOIN ({_REIGNS}) reigns ON reigns.p = records.sent_p AND reigns.leader <> records.node
  AND reigns.begin_ns + {_LONG_NS} <= records.invoke_ns AND records.complete_ns < reigns.end_ns
WHERE records.outcome = 'ok' AND records.acks <> 0 AND records.attempts = 1
  AND NOT EXISTS (SELECT 1 FROM windows WHERE windows.begin_ns <= records.complete_ns
                  AND records.invoke_ns < windows.end_ns + {_LONG_NS})"""
"""Acknowledgements long after another broker had become leader, without a fault."""


def _explain(row: Mapping[str, Any]) -> str:
    epoch = row["leader_epoch"]
    if row["sub_kind"] == "knew better":
        return (
            f"Broker {row['node']} acknowledged {row['value_id']} at {place(row)}, though it had "
            f"reported before that broker {row['leader']} leads in epoch {epoch}."
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
        yield from (
            partition.violation("two in one epoch")
            for led_epochs in led.values()
            if len(led_epochs) > 1
        )
        acked: dict[int, list[Row]] = {}
        for send in partition.sends:
            offset = acknowledged_offset(send)
            records = history.records_of[send.value_id]
            is_at_ack = (partition.topic, partition.partition, offset) in places_of(records)
            epoch = _epoch_of(history, records)
            if (
                is_at_ack
                and send.attempts == 1
                and send.node is not None
                and epoch not in (None, -1)
            ):
                acked.setdefault(epoch, []).append(send)
                if len(led.get(epoch, ())) == 1 and send.node not in led[epoch]:
                    yield partition.violation("not the leader", offset, send.value_id)
        for sends in acked.values():
            if len({send.node for send in sends}) > 1:
                value = min(send.value_id for send in sends)
                yield partition.violation("two acknowledged", None, value)


def _epoch_of(history: SmallHistory, records: list[Row]) -> int | None:
    """The last epoch that all copies of a record at one place have; -1 for one without epochs."""
    first_epochs: list[int] = []
    for record in records:
        copies = history.copies_of[record.value_id]
        epochs = {row.leader_epoch for row in copies if place_of(row) == place_of(record)}
        first_epochs += epochs if len(epochs) == 1 else ()
    return max(first_epochs, default=None)


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
    requires=(LEADER_EPOCHS,),
    opportunities=f"SELECT COALESCE(SUM(records.n), 0) AS n {_JUDGED}",
    violations=union(_NOT_THE_LEADER, _TWO_IN_ONE_EPOCH, _TWO_ACKNOWLEDGED, _KNEW_BETTER, _DEPOSED),
    explain=_explain,
    tie="finding.value_id, finding.leader_epoch",
    compares_times=True,
    needs=("sends", "replicas", "states"),
    reads=("records", "record_counts", "views", "state_spans", "windows"),
    rests_on=("sends", "replicas", "states", "samples", "faults"),
    reference=_reference,
    reference_covers=("not the leader", "two in one epoch", "two acknowledged"),
)
