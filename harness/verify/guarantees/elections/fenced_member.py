"""A fenced broker leads nothing and is in no ISR.

KRaft's controller fences a broker and removes it from its partitions in one batch of the metadata
log, whose records have one time. So versions of a partition and the absences of a broker are
compared by that time: a version that ended when the broker was fenced is correct.

The last member of an ISR may stay in it without a leader: no other replica has all records."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.limits import FOREVER_NS
from urteil.harness.verify.reference import SmallHistory, Violation

_REGISTRATIONS = "/brokers/ids/"
_ABSENCES = f"""
(SELECT registrations.broker, registrations.begin_ns, registrations.end_ns
 FROM (SELECT CAST(SUBSTRING(path, {len(_REGISTRATIONS) + 1}) AS INT) AS broker, version,
         at_ns AS begin_ns,
         COALESCE(LEAD(at_ns) OVER (PARTITION BY path ORDER BY zxid), {FOREVER_NS}) AS end_ns
       FROM states WHERE path LIKE '{_REGISTRATIONS}%') registrations
 CROSS JOIN (SELECT MAX(epoch) AS epoch FROM metadata_logs) quorum
 CROSS JOIN (SELECT MAX(begin_ns) AS begin_ns FROM state_spans spans) last_change
 WHERE registrations.version < 0 AND quorum.epoch IS NOT NULL
   AND registrations.begin_ns < registrations.end_ns
   AND registrations.begin_ns <= last_change.begin_ns)
"""
"""The times in which brokers were fenced, in KRaft clusters. The brokers' stop after the run is
later than the last change of a partition."""

_WHILE_FENCED = f"""
FROM state_spans spans CROSS JOIN {_ABSENCES} absences
WHERE spans.begin_ns < spans.end_ns AND spans.begin_ns < absences.end_ns
  AND absences.begin_ns < spans.end_ns
"""


def _explain(row: Mapping[str, Any]) -> str:
    part = "leads" if row["sub_kind"] == "leads" else "is in the ISR of"
    return (
        f"Broker {row['broker']} was fenced, and by version {row['version']} of its state it "
        f"{part} {place(row)}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No version of a partition that is current while a broker is fenced names the broker, except
    as the last in-sync replica of a partition without a leader."""
    if not history.metadata_logs:
        return
    known = [row for row in history.states if (row.path or "").startswith(_REGISTRATIONS)]
    by_broker = defaultdict(list)
    for row in sorted(known, key=lambda row: row.zxid):
        by_broker[int(row.path.removeprefix(_REGISTRATIONS))].append(row)
    changes = [state.at_ns for partition in history.partitions for state in partition.versions]
    for broker, rows in by_broker.items():
        for row, after in zip(rows, [*rows[1:], None], strict=True):
            unfenced_ns = after.at_ns if after else FOREVER_NS
            if row.version >= 0 or row.at_ns >= unfenced_ns or row.at_ns > max(changes, default=0):
                continue
            for partition in history.partitions:
                for state, end_ns in partition.reigns:
                    if max(state.at_ns, row.at_ns) >= min(end_ns, unfenced_ns):
                        continue
                    isr = json.loads(state.isr or "[]")
                    if state.leader == broker:
                        yield partition.violation("leads")
                    if broker in isr and not (state.leader < 0 and len(isr) == 1):
                        yield partition.violation("in sync")


GUARANTEE = Guarantee(
    name="fenced_member",
    rank=61,
    occasion=Occasion.QUORUM,
    about="a fenced broker leads a partition or is in its ISR",
    promise="A fenced broker is neither leader nor in-sync replica of any partition.",
    source="KIP-631, KIP-841; KAFKA-13916",
    sub_kinds={
        "leads": "a partition's leader is a fenced broker",
        "in sync": "a fenced broker is in the ISR of a partition",
    },
    details=(
        "Judged are clusters of KRaft, by the times of the metadata log. A broker that is fenced "
        "after the last change of any partition is not judged.",
    ),
    not_counted=("The last in-sync replica of a partition without a leader.",),
    opportunities=f"SELECT COUNT(*) AS n FROM {_ABSENCES} absences",
    violations=f"""
SELECT 'leads' AS sub_kind, spans.p, CAST(NULL AS BIGINT) AS off, spans.begin_ns AS at_ns,
  spans.begin_ns AS until_ns, absences.broker, spans.version, spans.leader_epoch
{_WHILE_FENCED} AND spans.leader = absences.broker
UNION ALL
SELECT 'in sync', spans.p, NULL, spans.begin_ns, spans.begin_ns, absences.broker, spans.version,
  spans.leader_epoch
{_WHILE_FENCED} AND spans.isr LIKE '%,' || CAST(absences.broker AS STRING) || ',%'
  AND NOT (spans.leader < 0 AND spans.isr_size = 1)""",
    explain=_explain,
    tie="finding.version, finding.broker",
    compares_times=True,
    needs=("states", "metadata_logs"),
    reads=("states", "state_spans", "metadata_logs"),
    rests_on=("states", "metadata_logs"),
    reference=_reference,
)
