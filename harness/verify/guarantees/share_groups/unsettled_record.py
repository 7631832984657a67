"""A share group receives every record of its topics until the record is settled.

No record from the group's start to the end of a partition is skipped: each is accepted, rejected,
or reaches the delivery limit. A record that was released, or whose lock ran out, is delivered
again. After the load the members continue until they have received nothing for longer than a lock
and the slack; records that are available then should have been delivered.

A delivery that no journal shows also counts towards the limit: its answer was lost, or its receiver
was killed. Records that such deliveries may have brought to the limit are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from urteil.chaos.capabilities import SHARE_GROUPS
from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.reference import Row, SmallHistory, Violation, subject_text

_DUE = """
FROM share_partitions
JOIN partitions ON partitions.p = share_partitions.p AND partitions.compacted = 0
JOIN slots ON slots.p = share_partitions.p AND slots.visible = 1
LEFT JOIN sends ON sends.value_id = slots.value_id
LEFT JOIN (
  SELECT deliveries.`group` AS grp, partitions.p, deliveries.offset AS off, COUNT(*) AS times,
    MAX(deliveries.delivery_count) AS counted, MAX(deliveries.read_ns) AS last_ns,
    MAX(CASE WHEN deliveries.acknowledgement = 'release' AND deliveries.outcome = 'ok'
             THEN deliveries.read_ns END) AS released_ns,
    MAX(CASE WHEN deliveries.acknowledgement IN ('accept', 'reject')
               AND deliveries.outcome IN ('ok', 'info') THEN 1 ELSE 0 END) AS settled
  FROM deliveries JOIN partitions ON partitions.topic_id = deliveries.topic_id
    AND partitions.partition = deliveries.partition
  GROUP BY deliveries.`group`, partitions.p, deliveries.offset) delivered
  ON delivered.grp = share_partitions.grp AND delivered.p = slots.p AND delivered.off = slots.off
WHERE COALESCE(sends.complete_ns, sends.invoke_ns, 0) <= share_partitions.drained_ns
  AND COALESCE(delivered.last_ns, 0) <= share_partitions.drained_ns
"""


def _explain(row: Mapping[str, Any]) -> str:
    where = f"{place(row)} to the share group {row['grp']}"
    if row["sub_kind"] == "never delivered":
        return f"{row['value_id']} was never delivered at {where}, which received later records."
    why = "was released" if row["sub_kind"] == "released" else "ran out of its lock"
    return (
        f"{row['value_id']} {why} after delivery {row['counted']} of {row['delivery_limit']} at "
        f"{where}, and was not delivered again."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Each record of the final leader's log is accepted, rejected, or may have reached the
    limit."""
    for (group, topic, partition), share in history.share_at.items():
        part = history.partition_at.get((topic, partition))
        for offset, value in sorted(part.due_records) if part and not part.part.compacted else ():
            rows = history.deliveries_of[group, topic, partition, offset]
            send = history.sends_by_value.get(value)
            sent_ns = (send.complete_ns or send.invoke_ns or 0) if send else 0
            if max([sent_ns, *(row.read_ns for row in rows)]) <= share.drained_ns:
                kind = _kind(rows, share)
                if kind is not None:
                    yield Violation(kind, topic, partition, offset, value, subject_text(group))


def _kind(rows: Sequence[Row], share: Row) -> str | None:
    if any(row.acknowledgement in ("accept", "reject") and row.outcome != "fail" for row in rows):
        return None
    counted = max((row.delivery_count or 0 for row in rows), default=0)
    if share.delivery_limit is None or counted + share.unseen_deliveries >= share.delivery_limit:
        return None
    if not rows:
        return "never delivered"
    last = max(row.read_ns for row in rows)
    released = any(
        row.acknowledgement == "release" and row.outcome == "ok" and row.read_ns == last
        for row in rows
    )
    return "released" if released else "lock ran out"


GUARANTEE = Guarantee(
    name="unsettled_record",
    rank=20,
    about="a record of a share group's topic is neither accepted, rejected nor at its delivery "
    "limit, and is not delivered any more",
    promise="Every record from the start of a share group to the end of a partition is delivered "
    "until it is accepted, rejected, or archived at the delivery limit.",
    source="KIP-932: share-partition start and end offset, acquisition lock, delivery count",
    sub_kinds={
        "never delivered": "no member received the record",
        "released": "the record was released at its last delivery, below the limit",
        "lock ran out": "no acceptance of the record may have succeeded, below the limit",
    },
    details=(
        "Judged are records of the final leader's log, when members have polled for the duration "
        "of a lock and 8 s after the record's send and last delivery.",
    ),
    not_counted=(
        "Records that may have reached the limit by deliveries that no journal has: two in each "
        "fault, and one for each lock that ran out in it.",
        "Acknowledgements of unknown outcome count as applied.",
    ),
    occasion=Occasion.SHARE_GROUP,
    opportunities=f"SELECT COUNT(*) AS n {_DUE}",
    violations=f"""
SELECT CASE WHEN delivered.times IS NULL THEN 'never delivered'
    WHEN delivered.released_ns = delivered.last_ns THEN 'released'
    ELSE 'lock ran out' END AS sub_kind,
  slots.p, slots.off, COALESCE(delivered.last_ns, sends.invoke_ns) AS at_ns,
  share_partitions.drained_ns AS until_ns, share_partitions.grp, slots.value_id,
  COALESCE(delivered.counted, 0) AS counted, share_partitions.delivery_limit,
  sends.client
{_DUE} AND COALESCE(delivered.settled, 0) = 0
  AND COALESCE(delivered.counted, 0) + share_partitions.unseen_deliveries
    < share_partitions.delivery_limit""",
    explain=_explain,
    tie="finding.value_id, finding.grp",
    compares_times=True,
    host_load_excuses=True,
    requires=(SHARE_GROUPS,),
    needs=("deliveries", "polls"),
    reads=("deliveries", "partitions", "share_partitions", "sends", "slots"),
    rests_on=("deliveries", "clients", "sends", "replicas", "logs"),
    subjects=("share_partitions",),
    reference=_reference,
    reference_subject="violation.grp",
)
