"""A record whose acceptance or rejection was acknowledged is never delivered to its group again.

The broker that leads a partition answers an acknowledgement when the share coordinator has stored
it in `__share_group_state`, so that neither a new leader nor a new coordinator may lose it. The
same holds for a release at the delivery limit, which archives the record.

A member may have acquired a record before another one accepted it, and its library may return the
record long after. So a delivery counts only if the member requested it after the acknowledgement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import SHARE_GROUPS
from urteil.harness.verify.guarantees.base import Excuse, Guarantee, Occasion, place
from urteil.harness.verify.reference import Row, SmallHistory, Violation, subject_text

LOST_STATE = Excuse(
    when="(SELECT MAX(unclean_on) FROM partitions WHERE topic = '__share_group_state') = 1",
    reason="unclean election is on: the topic of share groups itself may have lost its tail",
    reads=("partitions", "partitions.unclean_on"),
)
KINDS = {"accept": "accepted", "reject": "rejected", "release": "archived"}

_SETTLED = """
FROM deliveries settled
JOIN partitions ON partitions.topic_id = settled.topic_id
  AND partitions.partition = settled.partition
JOIN share_partitions ON share_partitions.grp = settled.`group`
  AND share_partitions.p = partitions.p
"""
_IS_SETTLED = """
settled.outcome = 'ok' AND (settled.acknowledgement IN ('accept', 'reject')
  OR settled.delivery_count >= share_partitions.delivery_limit)
"""


def _explain(row: Mapping[str, Any]) -> str:
    act = {"accepted": "accepted", "rejected": "rejected"}.get(row["sub_kind"], "released")
    return (
        f"{row['client']} {act} {place(row)} in the share group {row['grp']} at its delivery "
        f"{row['delivery_count']}, the broker acknowledged it, and {row['other']} received it "
        "again."
    )


def is_settled(row: Row, delivery_limit: int | None) -> bool:
    """Whether an acknowledged delivery ends a record's deliveries."""
    if row.outcome != "ok":
        return False
    is_known = None not in (delivery_limit, row.delivery_count)
    at_limit = is_known and row.delivery_count >= delivery_limit
    return row.acknowledgement in ("accept", "reject") or bool(row.acknowledgement and at_limit)


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No delivery was requested after an acknowledgement that settled the record."""
    for (group, topic, partition, offset), rows in history.deliveries_of.items():
        share = history.share_at.get((group, topic, partition))
        delivery_limit = share.delivery_limit if share else None
        settled_rows = [
            settled
            for settled in (rows if share else ())
            if is_settled(settled, delivery_limit)
            and any(delivery.requested_ns > settled.complete_ns for delivery in rows)
        ]
        for kind in sorted({KINDS[row.acknowledgement] for row in settled_rows}):
            value = rows[0].value_id
            yield Violation(kind, topic, partition, offset, value, subject_text(group))


GUARANTEE = Guarantee(
    name="settled_redelivered",
    rank=10,
    about="a share group receives a record again that it has accepted, rejected or archived",
    promise="A record that was accepted, rejected, or released at the delivery limit is not "
    "delivered to its share group again.",
    source="KIP-932: record states; Kafka protocol: ShareAcknowledge",
    sub_kinds={
        "accepted": "a record was delivered after its acceptance had been acknowledged",
        "rejected": "a record was delivered after its rejection had been acknowledged",
        "archived": (
            "a record was delivered after its release at the delivery limit had been acknowledged"
        ),
    },
    not_counted=(
        "Acknowledgements with an error or without an answer, and deliveries that may have been "
        "requested before the answer.",
        "Two acknowledgements of one record that both succeed: Apache Kafka ignores one that comes "
        "after its lock when the share-partition start has passed the record, and returns no "
        "error.",
    ),
    occasion=Occasion.SHARE_GROUP,
    opportunities=f"SELECT COUNT(*) AS n {_SETTLED} WHERE {_IS_SETTLED}",
    violations=f"""
SELECT CASE settled.acknowledgement WHEN 'accept' THEN 'accepted' WHEN 'reject' THEN 'rejected'
    ELSE 'archived' END AS sub_kind, partitions.p, settled.offset AS off,
  MIN(settled.complete_ns) AS at_ns, MIN(later.read_ns) AS until_ns, settled.`group` AS grp,
  MIN(settled.value_id) AS value_id, MIN(settled.client) AS client, MIN(later.client) AS other,
  MIN(settled.delivery_count) AS delivery_count
{_SETTLED}
JOIN deliveries later ON later.`group` = settled.`group` AND later.topic_id = settled.topic_id
  AND later.partition = settled.partition AND later.offset = settled.offset
  AND later.requested_ns > settled.complete_ns
WHERE {_IS_SETTLED} AND settled.acknowledgement IS NOT NULL
GROUP BY settled.acknowledgement, partitions.p, settled.offset, settled.`group`""",
    excuses=(LOST_STATE,),
    explain=_explain,
    tie="finding.grp",
    compares_times=True,
    requires=(SHARE_GROUPS,),
    needs=("deliveries",),
    reads=("deliveries", "partitions", "share_partitions"),
    rests_on=("deliveries", "clients"),
    subjects=("share_partitions",),
    reference=_reference,
    reference_subject="violation.grp",
)
