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
SELECT 'replica' AS source, partitions.p, replicas.offset AS off, replicas.broker,
  CAST(NULL AS STRING) AS client, CAST(NULL AS BIGINT) AS pass, replicas.value_id,
  replicas.leader_epoch, replicas.batch_crc, replicas.control
FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
  AND partitions.partition = replicas.partition
WHERE replicas.offset IN ({offsets})
UNION ALL
SELECT 'read', partitions.p, reads.offset, NULL, reads.client, reads.pass, reads.value_id,
  reads.leader_epoch, NULL, NULL
FROM reads JOIN partitions ON partitions.topic_id = reads.topic_id
  AND partitions.partition = reads.partition
WHERE reads.offset IN ({offsets})
UNION ALL
SELECT 'acknowledgement', partitions.p, sends.offset, sends.node, sends.client, NULL,
  sends.value_id, NULL, NULL, NULL
FROM sends JOIN partitions ON partitions.topic_id = sends.topic_id
  AND partitions.partition = sends.partition
WHERE sends.outcome = 'ok' AND sends.offset IN ({offsets})
"""


def find_supporting_rows(engine: Engine, rows: Sequence[Row]) -> dict[tuple[int, int], list[Row]]:
    """Witnesses of the first findings by (partition number, offset), in a fixed order."""
    places = {(row["p"], row["off"]) for row in rows[:SHOWN] if None not in (row["p"], row["off"])}
    if not places:
        return {}
    offsets = ", ".join(str(off) for off in sorted({off for _, off in places}))
    supporting_rows: dict[tuple[int, int], list[Row]] = {place: [] for place in places}
    for row in sorted(engine.query(_OF.format(offsets=offsets)), key=_order):
        known = supporting_rows.get((row.pop("p"), row["off"]), [])
        if len(known) < EACH:
            row["offset"] = row.pop("off")
            known.append({name: value for name, value in row.items() if value is not None})
    return supporting_rows


def _order(row: Row) -> tuple[str, int, str, int, str]:
    return (
        row["source"],
        row["broker"] or 0,
        row["client"] or "",
        row["pass"] or 0,
        row["value_id"] or "",
    )
