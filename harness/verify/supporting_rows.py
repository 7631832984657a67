"""Acknowledgements, reads and replicas of the offset of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.harness.verify.engines.engine import Engine
from urteil.harness.verify.evidence import Row

SHOWN = 10
"""So many findings of a guarantee are shown with their witnesses."""

EACH = 12
"""So many witnesses of one finding."""

_OF = """
SELECT 'replica' AS source, q.p, r.offset AS off, r.broker, CAST(NULL AS STRING) AS client,
  CAST(NULL AS BIGINT) AS pass, r.value_id, r.leader_epoch, r.batch_crc, r.control
FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
WHERE r.offset IN ({offsets})
UNION ALL
SELECT 'read', q.p, r.offset, NULL, r.client, r.pass, r.value_id, r.leader_epoch, NULL, NULL
FROM reads r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
WHERE r.offset IN ({offsets})
UNION ALL
SELECT 'acknowledgement', q.p, s.offset, s.node, s.client, NULL, s.value_id, NULL, NULL, NULL
FROM sends s JOIN parts q ON q.topic_id = s.topic_id AND q.partition = s.partition
WHERE s.outcome = 'ok' AND s.offset IN ({offsets})
"""


def find_supporting_rows(engine: Engine, rows: Sequence[Row]) -> dict[tuple[int, int], list[Row]]:
    """Witnesses of the first findings by (partition number, offset), in a fixed order."""
    places = {(row["p"], row["off"]) for row in rows[:SHOWN] if None not in (row["p"], row["off"])}
    if not places:
        return {}
    offsets = ", ".join(str(off) for off in sorted({off for _, off in places}))
    found: dict[tuple[int, int], list[Row]] = {place: [] for place in places}
    for row in sorted(engine.query(_OF.format(offsets=offsets)), key=_order):
        known = found.get((row.pop("p"), row["off"]), [])
        if len(known) < EACH:
            row["offset"] = row.pop("off")
            known.append({name: value for name, value in row.items() if value is not None})
    return found


def _order(row: Row) -> tuple[str, int, str, int, str]:
    return (
        row["source"],
        row["broker"] or 0,
        row["client"] or "",
        row["pass"] or 0,
        row["value_id"] or "",
    )
