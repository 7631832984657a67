"""Acknowledged records of imported histories that no reader received and that are not proven lost.

Such a record is lost, or lies where no reader passed. The evidence does not decide between the two,
so the verdict is UNKNOWN. What `lost_write` and `unseen` prove is their finding instead.
"""

from __future__ import annotations

from urteil.harness.scenario import IMPORTED, RunFacts
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.engines.engine import Engine
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.guarantees.delivery.unseen import BEYOND
from urteil.harness.verify.limits import OF_COMMIT
from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.unplaced_sends import DUE

_UNREAD = f"""
SELECT v.sent_p AS p, COUNT(*) AS n, COUNT(v.ack_off) AS placed, MIN(v.ack_off) AS first_off
FROM irregular_values v JOIN parts q ON q.p = v.sent_p {OF_COMMIT}
LEFT JOIN unplaced u ON u.value_id = v.value_id AND u.passed = 1
WHERE v.sent = 1 AND q.ours = 1 AND q.has_log = 0 AND q.compacted = 0 AND v.acks <> 0
  AND v.n_reads = 0 AND v.asked = 0 AND u.value_id IS NULL AND {DUE}
  AND NOT COALESCE(q.ends_known = 1 AND {BEYOND}, FALSE)
GROUP BY v.sent_p ORDER BY v.sent_p
"""


def unread_record_reasons(engine: Engine, facts: RunFacts, derived: Derived) -> list[str]:
    """A sentence for each partition with such records."""
    if facts.runtime != IMPORTED or not derived.logless:
        return []
    names = {part["p"]: f"{part['topic']}-{part['partition']}" for part in derived.parts}
    return [_sentence(names[row["p"]], row) for row in engine.query(_UNREAD)]


def _sentence(name: str, row: Row) -> str:
    """The sentence about one partition."""
    parts = []
    if row["placed"]:
        records = count_text(row["placed"], "acknowledged record")
        lie = "lies" if row["placed"] == 1 else "lie"
        parts.append(
            f"{records}, the first at offset {row['first_off']}, {lie} where no reader passed"
        )
    if without := row["n"] - row["placed"]:
        records = count_text(without, "record")
        parts.append(f"no reader received {records} acknowledged without an offset, or committed")
    return (
        f"{name}: {', and '.join(parts)}: unseen, or lost (a reader from the beginning to the end "
        "would show which)"
    )
