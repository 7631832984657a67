"""No two members of a share group hold one record at the same time.

A broker that delivers a record to a member locks it for the group's lock duration, and delivers it
to no other member before the lock ends: by the member's acknowledgement, by time, by the end of the
member's connection, or with the broker's leadership.

A journal shows when a poll returned a record, and from when on it may have been requested, but not
when it was acquired. So a violation needs a second member that requested the record after the first
one had received it, and that received it before the first lock can have ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from urteil.chaos.capabilities import SHARE_GROUPS
from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.limits import FOREVER_NS
from urteil.harness.verify.reference import Row, SmallHistory, Violation, subject_text


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['other']} received {place(row)} in the share group {row['grp']} while "
        f"{row['client']} held it: its lock had {row['left_ms']} ms left at least."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No delivery is, with its request, between another member's delivery and the end of that
    member's lock, if no fault acted and the partition's leader stayed."""
    for (group, topic, partition, offset), rows in history.deliveries_of.items():
        share = history.share_at.get((group, topic, partition))
        if share and any(
            _is_held(first, second, share) and not _may_be_free(history, first, second, share)
            for first, second in product(rows, rows)
        ):
            value = rows[0].value_id
            yield Violation("held by another", topic, partition, offset, value, subject_text(group))


def _is_held(first: Row, second: Row, share: Row) -> bool:
    ends_ns = first.requested_ns + share.lock_ns
    if first.invoke_ns is not None:
        ends_ns = min(ends_ns, first.invoke_ns)
    is_other = (first.client, first.session) != (second.client, second.session)
    return is_other and first.read_ns <= second.requested_ns and second.read_ns < ends_ns


def _may_be_free(history: SmallHistory, first: Row, second: Row, share: Row) -> bool:
    begin_ns, end_ns = first.requested_ns, second.read_ns
    disturbed = any(
        fault.begin_ns <= end_ns and begin_ns < fault.end_ns
        for fault in history.derived_rows("windows")
        if fault.ended_broker is None
    )
    return disturbed or any(
        begin_ns <= span.begin_ns <= end_ns
        for span in history.made_of.get(("state_spans", share.p), [])
    )


GUARANTEE = Guarantee(
    name="two_holders",
    rank=30,
    about="two members of a share group hold one record at the same time",
    promise="A record that a member of a share group has acquired is delivered to no other member "
    "until the member acknowledges it or its lock ends.",
    source="KIP-932: acquisition lock; group.share.record.lock.duration.ms",
    sub_kinds={
        "held by another": "a member requested and received a record while another one's lock on "
        "it could not have ended"
    },
    not_counted=(
        "Deliveries while the partition's state changes, or while any fault acts but the end of a "
        "single broker: a lock ends with the leadership of its broker, and with the connection of "
        "its member.",
    ),
    unused_evidence=(
        "Deliveries to members that had waited since before the first delivery: they may have "
        "acquired the record earlier.",
    ),
    occasion=Occasion.SHARE_GROUP,
    opportunities="SELECT COUNT(*) AS n FROM deliveries JOIN share_partitions "
    "ON share_partitions.grp = deliveries.`group` JOIN partitions "
    "ON partitions.p = share_partitions.p AND partitions.topic_id = deliveries.topic_id "
    "AND partitions.partition = deliveries.partition",
    violations=f"""
SELECT 'held by another' AS sub_kind, held.p, held.off, MIN(held.at_ns) AS at_ns,
  MIN(held.until_ns) AS until_ns, held.grp, MIN(held.value_id) AS value_id,
  MIN(held.client) AS client, MIN(held.other) AS other,
  MAX((held.free_ns - held.until_ns) DIV 1000000) AS left_ms
FROM (SELECT share_partitions.p, owned.offset AS off, share_partitions.grp, owned.value_id,
        owned.client, taken.client AS other, owned.requested_ns, owned.read_ns AS at_ns,
        taken.read_ns AS until_ns,
        LEAST(owned.requested_ns + share_partitions.lock_ns,
              COALESCE(owned.invoke_ns, {FOREVER_NS})) AS free_ns
      FROM deliveries owned
      JOIN partitions ON partitions.topic_id = owned.topic_id
        AND partitions.partition = owned.partition
      JOIN share_partitions ON share_partitions.grp = owned.`group`
        AND share_partitions.p = partitions.p
      JOIN deliveries taken ON taken.`group` = owned.`group` AND taken.topic_id = owned.topic_id
        AND taken.partition = owned.partition AND taken.offset = owned.offset
        AND taken.requested_ns >= owned.read_ns
      WHERE owned.client <> taken.client OR owned.session <> taken.session) held
WHERE held.until_ns < held.free_ns
  AND NOT EXISTS (SELECT 1 FROM windows WHERE windows.ended_broker IS NULL
                    AND windows.begin_ns <= held.until_ns AND held.requested_ns < windows.end_ns)
  AND NOT EXISTS (SELECT 1 FROM state_spans WHERE state_spans.p = held.p
                    AND state_spans.begin_ns BETWEEN held.requested_ns AND held.until_ns)
GROUP BY held.p, held.off, held.grp""",
    explain=_explain,
    tie="finding.grp",
    compares_times=True,
    host_load_excuses=True,
    requires=(SHARE_GROUPS,),
    needs=("deliveries",),
    reads=("deliveries", "partitions", "share_partitions", "state_spans", "windows"),
    rests_on=("deliveries", "clients", "faults", "states"),
    subjects=("share_partitions",),
    reference=_reference,
    reference_subject="violation.grp",
)
