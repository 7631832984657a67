"""Nobody reads what was not yet sent.

Only the end of a poll is known, so a read may be accused only when its poll had returned before
the send was invoked.
"""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, place

_JUDGED = "FROM vals v WHERE v.sent = 1 AND v.n_reads > 0"

GUARANTEE = Guarantee(
    name="future_read",
    about="a record was read before it was sent",
    promise="A consumer receives what producers have published.",
    source="Kafka documentation, 1.1 Introduction; causality under one monotonic clock",
    opportunities=f"SELECT COUNT(*) AS n {_JUDGED}",
    violations=f"""
SELECT 'before its send' AS sub_kind, v.p, v.read_slot % {SLOT} AS off, v.read_ns AS at_ns,
  v.invoke_ns AS until_ns, v.value_id, v.client, v.read_ns, v.invoke_ns
{_JUDGED} AND v.read_ns < v.invoke_ns""",
    explain=lambda row: (
        f"{row['value_id']} was read at {place(row)} "
        f"{(row['invoke_ns'] - row['read_ns']) / 1e6:.3f} ms before it was sent."
    ),
    needs=("sends", "reads"),
    sub_kinds=("before its send",),
)
