"""A record is where its acknowledgement says."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import DESTROYED, SLOT, Guarantee, numbered, place

_WHERE = """
WHERE v.outcome = 'ok' AND v.acks <> 0 AND v.ack_off IS NOT NULL AND v.log_slots > 0
"""

GUARANTEE = Guarantee(
    name="misplaced_ack",
    about="a record survives, but not at the offset its acknowledgement told",
    promise="The acknowledgement of a produced batch carries the offset that the record was "
    "assigned in its partition.",
    source="Kafka protocol guide, Produce response: base_offset; RecordMetadata.offset",
    opportunities=numbered(f"FROM vals v {_WHERE} AND v.sent_p IS NOT NULL"),
    violations=f"""
SELECT 'elsewhere' AS sub_kind, v.p, v.ack_off AS off, v.invoke_ns AS at_ns,
  v.complete_ns AS until_ns, v.value_id, v.client, v.acks, v.first_slot % {SLOT} AS found_off,
  q.unclean_on, COALESCE(f.any_floor, 0) AS any_floor,
  COALESCE(f.unclean_floor, 0) AS unclean_floor, f.lost_floor
FROM odd v JOIN parts q ON q.p = v.sent_p
LEFT JOIN floors f ON f.p = v.sent_p AND v.invoke_ns >= f.from_ns AND v.invoke_ns < f.to_ns
{_WHERE} AND v.at_ack = 0""",
    permitted="CASE WHEN x.acks = 1 AND x.off >= x.any_floor "
    "THEN 'acks=1: truncated offsets are used again' "
    "WHEN x.unclean_on = 1 AND x.off >= x.unclean_floor "
    "THEN 'an unclean election began below this offset' "
    f"WHEN x.off >= x.lost_floor THEN '{DESTROYED}' END",
    explain=lambda row: (
        f"{row['value_id']} was acknowledged at {place(row)}, but lies at offset "
        f"{row['found_off']} and not there."
    ),
    sub_kinds=("elsewhere",),
)
