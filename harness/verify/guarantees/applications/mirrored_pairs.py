"""SQL over mirrored partitions: each record of a source with its place in the mirror."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import SLOT, Excuse

PAIRS = f"""
SELECT m.p AS mirror_p, v.sent_p AS p, v.value_id, v.client, v.invoke_ns, v.complete_ns,
  v.first_slot % {SLOT} AS off, w.first_slot DIV {SLOT} AS copy_p,
  w.first_slot % {SLOT} AS copy_off, w.last_slot % {SLOT} AS last_copy_off,
  CASE WHEN q.spoilt_ns IS NULL AND o.spoilt_ns IS NULL THEN 0 ELSE 1 END AS spoilt
FROM mirrors m JOIN vals v ON v.sent_p = m.source_p
JOIN parts q ON q.p = m.source_p JOIN parts o ON o.p = m.p
LEFT JOIN vals w ON w.value_id = 'copy/' || v.value_id AND w.first_slot IS NOT NULL
WHERE v.sent = 1 AND v.n_slots = 1 AND v.log_slots = 1
"""
"""The records that a mirrored partition finally holds once; `copy_p` is null without a copy."""

SPOILT = Excuse(
    when="x.spoilt = 1",
    reason="an unclean election or a lost disk may have destroyed records or copies",
    reads=("parts.spoilt_ns",),
)
