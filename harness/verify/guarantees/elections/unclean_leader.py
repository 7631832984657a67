"""Leaders come from the ISR, or from the eligible leader replicas when the ISR is empty, unless
unclean election is enabled or an administrator requested it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from urteil.harness.permitted_deviations import Permit
from urteil.harness.verify.guarantees.base import Excuse, Guarantee, place
from urteil.harness.verify.reference import SmallHistory, Violation

_JUDGED = """
FROM state_spans spans JOIN partitions ON partitions.p = spans.p
WHERE spans.version = spans.prev_version + 1 AND spans.leader >= 0
  AND spans.leader <> spans.prev_leader
"""
"""The ISR of a missing version is unknown (validation/completeness.py)."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "no replica":
        return (
            f"In epoch {row['leader_epoch']} the ISR of {place(row)} is [{row['isr'].strip(',')}], "
            f"though broker {row['foreign_isr']} never was one of its replicas."
        )
    led = f"In epoch {row['leader_epoch']} broker {row['leader']}"
    if row["sub_kind"] == "outside its own ISR":
        return f"{led} leads {place(row)}, though its ISR is [{row['isr'].strip(',')}]."
    eligible = (row["prev_elr"] or "").strip(",")
    others = f", the eligible leader replicas were [{eligible}]," if eligible else ""
    return (
        f"{led} became leader of {place(row)}, though the ISR before was "
        f"[{row['prev_isr'].strip(',')}]{others} and unclean election is off."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A new leader is in the last ISR that had members or in the eligible leader replicas, and in
    its own ISR; the ISR contains only replicas.

    Left out: leaders after a version that the evidence lacks.
    """
    for partition in history.partitions:
        replicas = {broker for row in partition.versions for broker in json.loads(row.replicas)}
        isr: list[int] = []
        for before, state in pairwise([None, *partition.versions]):
            now = json.loads(state.isr or "[]") if state else []
            if state is None:
                continue
            if before is not None and state.leader >= 0 and state.leader != before.leader:
                follows = state.version == before.version + 1
                eligible = [*isr, *json.loads(before.elr or "[]")]
                if follows and isr and state.leader not in eligible:
                    yield partition.violation("outside the ISR")
            if state.leader >= 0 and now and state.leader not in now:
                yield partition.violation("outside its own ISR")
            others = set(now) - replicas - set(json.loads(before.isr or "[]") if before else [])
            if before is not None and others:
                yield partition.violation("no replica")
            isr = now or isr


GUARANTEE = Guarantee(
    name="unclean_leader",
    rank=30,
    about="a broker outside the ISR became leader",
    promise="Only members of the in-sync set are eligible for election as leader, unless unclean "
    "leader election is enabled.",
    source="Kafka documentation, 4.7 Replication: Unclean leader election; KIP-106, KIP-966",
    sub_kinds={
        "outside the ISR": "the new leader was not in the previous ISR, nor eligible (KIP-966)",
        "outside its own ISR": "a leader is not in the ISR of its state",
        "no replica": "a broker that never was a replica came into the ISR",
    },
    details=(
        "A leader came from outside the ISR between two versions of a state. An ISR without "
        "members counts as the last one that had some.",
    ),
    not_counted=("Unclean elections that an administrator requested (permitted).",),
    opportunities=f"SELECT COUNT(*) AS n {_JUDGED}",
    violations=f"""
SELECT 'outside the ISR' AS sub_kind, spans.p, CAST(NULL AS BIGINT) AS off, spans.begin_ns AS at_ns,
  spans.begin_ns AS until_ns, spans.leader, spans.leader_epoch, spans.isr, spans.prev_leader,
  spans.prev_isr, spans.prev_elr, spans.version, partitions.unclean_on,
  partitions.unclean_requested,
  spans.foreign_isr
{_JUDGED} AND spans.prev_isr <> ','
  AND spans.prev_isr NOT LIKE '%,' || CAST(spans.leader AS STRING) || ',%'
  AND COALESCE(spans.prev_elr, ',') NOT LIKE '%,' || CAST(spans.leader AS STRING) || ',%'
UNION ALL
SELECT 'outside its own ISR', p, NULL, begin_ns, begin_ns, leader, leader_epoch, isr,
  prev_leader, isr, prev_elr, version, 0, 0, foreign_isr
FROM state_spans spans WHERE leader >= 0 AND isr_size > 0
  AND isr NOT LIKE '%,' || CAST(leader AS STRING) || ',%'
UNION ALL
SELECT 'no replica', p, NULL, begin_ns, begin_ns, leader, leader_epoch, isr,
  prev_leader, isr, prev_elr, version, 0, 0, foreign_isr
FROM state_spans spans WHERE foreign_isr IS NOT NULL AND prev_version IS NOT NULL""",
    excuses=(
        Excuse(
            when="violation.unclean_requested = 1",
            reason="an administrator requested it",
            reads=("partitions.unclean_requested",),
            permits=(Permit.UNCLEAN_ELECTION,),
        ),
        Excuse(
            when="violation.unclean_on = 1",
            reason="unclean election is enabled",
            reads=("partitions.unclean_on",),
            permits=(Permit.UNCLEAN_ELECTION,),
        ),
    ),
    explain=_explain,
    tie="finding.version",
    needs=("states",),
    reads=("partitions", "state_spans"),
    rests_on=("states", "admin_ops"),
    reference=_reference,
)
