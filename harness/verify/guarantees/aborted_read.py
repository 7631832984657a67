"""A send that failed for certain is nowhere to be seen."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, place

_JUDGED = "FROM vals v WHERE v.sent = 1 AND v.outcome = 'fail' AND v.ambiguous = 0"

GUARANTEE = Guarantee(
    name="aborted_read",
    about="a record whose send failed for certain is visible",
    promise="A request that is answered with an error that rules out its append is not appended.",
    source="Kafka protocol guide, Error Codes; KAFKA-13574 for those that rule out nothing",
    opportunities=f"SELECT COUNT(*) AS n {_JUDGED}",
    violations=f"""
SELECT CASE WHEN v.n_reads > 0 THEN 'read' ELSE 'on disk' END AS sub_kind, v.p,
  v.shown_slot % {SLOT} AS off, v.invoke_ns AS at_ns, v.complete_ns AS until_ns, v.value_id,
  v.client, v.error, v.n_reads, v.copies
{_JUDGED} AND v.shown_slot IS NOT NULL""",
    explain=lambda row: (
        f"{row['value_id']} failed with {row['error']}, yet it is at {place(row)}: in "
        f"{row['n_reads']} reads and {row['copies']} replicas."
    ),
    sub_kinds=("read", "on disk"),
)
