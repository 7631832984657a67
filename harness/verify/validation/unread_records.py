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
SELECT records.sent_p AS p, COUNT(*) AS n, COUNT(records.ack_off) AS placed,
  MIN(records.ack_off) AS first_off
FROM irregular_values records JOIN partitions ON partitions.p = records.sent_p {OF_COMMIT}
LEFT JOIN unplaced ON unplaced.value_id = records.value_id AND unplaced.passed = 1
WHERE records.sent = 1 AND partitions.in_run = 1 AND partitions.has_log = 0
  AND partitions.compacted = 0 AND records.acks <> 0 AND records.n_reads = 0 AND records.asked = 0
  AND unplaced.value_id IS NULL AND {DUE} AND NOT COALESCE(partitions.ends_known = 1 AND {BEYOND},
      FALSE)
GROUP BY records.sent_p ORDER BY records.sent_p
"""


def unread_record_reasons(engine: Engine, facts: RunFacts, derived: Derived) -> list[str]:
    """A sentence for each partition with such records."""
    if facts.runtime != IMPORTED or not derived.logless:
        return []
    names = {part["p"]: f"{part['topic']}-{part['partition']}" for part in derived.partitions}
    return [_sentence(names[row["p"]], row) for row in engine.query(_UNREAD)]


def _sentence(name: str, row: Row) -> str:
    """The sentence about one partition."""
    clauses = []
    if row["placed"]:
        records = count_text(row["placed"], "acknowledged record")
        lie = "lies" if row["placed"] == 1 else "lie"
        clauses.append(
            f"{records}, the first at offset {row['first_off']}, {lie} where no reader passed"
        )
    if without := row["n"] - row["placed"]:
        records = count_text(without, "record")
        clauses.append(f"no reader received {records} acknowledged without an offset, or committed")
    return (
        f"{name}: {', and '.join(clauses)}: unseen, or lost "
        "(a reader from the beginning to the end would show which)"
    )
