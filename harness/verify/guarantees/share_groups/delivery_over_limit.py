"""A share group receives a record no more often than its delivery limit.

The broker returns its count of deliveries with each record. A broker that loses its leadership may
have counted deliveries that its successor does not know: then a record is delivered more often, but
its count stays within the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import SHARE_GROUPS
from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.reference import SmallHistory, Violation, subject_text

_COUNTED = """
FROM deliveries
JOIN partitions ON partitions.topic_id = deliveries.topic_id
  AND partitions.partition = deliveries.partition
JOIN share_partitions ON share_partitions.grp = deliveries.`group`
  AND share_partitions.p = partitions.p
WHERE deliveries.delivery_count IS NOT NULL AND share_partitions.delivery_limit IS NOT NULL
"""


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['client']} received {place(row)} as delivery {row['delivery_count']} of the share "
        f"group {row['grp']}, whose limit is {row['delivery_limit']}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No count of a delivery is above the limit."""
    for (group, topic, partition, offset), rows in history.deliveries_of.items():
        share = history.share_at.get((group, topic, partition))
        if share and share.delivery_limit is not None:
            counts = [row.delivery_count for row in rows if row.delivery_count is not None]
            if max(counts, default=0) > share.delivery_limit:
                value, subject = rows[0].value_id, subject_text(group)
                yield Violation("over the limit", topic, partition, offset, value, subject)


GUARANTEE = Guarantee(
    name="delivery_over_limit",
    rank=40,
    about="a record is delivered to a share group more often than the delivery limit",
    promise="A record is delivered to a share group at most as often as the delivery limit says, "
    "and is archived then.",
    source="KIP-932: group.share.delivery.count.limit",
    sub_kinds={"over the limit": "the broker's count of a delivery is above the limit"},
    details=("The limit is `group.share.delivery.count.limit` of the scenario's brokers, or 5.",),
    not_counted=("External clusters, whose limit is unknown.",),
    occasion=Occasion.SHARE_GROUP,
    opportunities=f"SELECT COUNT(*) AS n {_COUNTED}",
    violations=f"""
SELECT 'over the limit' AS sub_kind, partitions.p, deliveries.offset AS off,
  MIN(deliveries.read_ns) AS at_ns, MAX(deliveries.read_ns) AS until_ns,
  deliveries.`group` AS grp, MIN(deliveries.value_id) AS value_id,
  MIN(deliveries.client) AS client, MAX(deliveries.delivery_count) AS delivery_count,
  MAX(share_partitions.delivery_limit) AS delivery_limit
{_COUNTED} AND deliveries.delivery_count > share_partitions.delivery_limit
GROUP BY partitions.p, deliveries.offset, deliveries.`group`""",
    explain=_explain,
    tie="finding.grp",
    requires=(SHARE_GROUPS,),
    needs=("deliveries",),
    reads=("deliveries", "partitions", "share_partitions"),
    rests_on=("deliveries", "clients"),
    subjects=("share_partitions",),
    reference=_reference,
    reference_subject="violation.grp",
)
