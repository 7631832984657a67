"""SQL over mirrored partitions: each record of a source with its place in the mirror."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import SLOT, Excuse

PAIRS = f"""
SELECT mirrors.p AS mirror_p, records.sent_p AS p, records.value_id, records.client,
  records.invoke_ns, records.complete_ns, records.first_slot % {SLOT} AS off,
  copies.first_slot DIV {SLOT} AS copy_p, copies.first_slot % {SLOT} AS copy_off,
  copies.last_slot % {SLOT} AS last_copy_off,
  CASE WHEN partitions.spoilt_ns IS NULL AND copy_partitions.spoilt_ns IS NULL THEN 0
       ELSE 1 END AS spoilt
FROM mirrors JOIN records ON records.sent_p = mirrors.source_p
JOIN partitions ON partitions.p = mirrors.source_p JOIN partitions copy_partitions
  ON copy_partitions.p = mirrors.p
LEFT JOIN records copies ON copies.value_id = 'copy/' || records.value_id
  AND copies.first_slot IS NOT NULL
WHERE records.sent = 1 AND records.n_slots = 1 AND records.log_slots = 1
"""
"""The records that a mirrored partition finally holds once; `copy_p` is null without a copy."""

SPOILT = Excuse(
    when="violation.spoilt = 1",
    reason="an unclean election or a lost disk may have destroyed records or copies",
    reads=("partitions.spoilt_ns",),
)
