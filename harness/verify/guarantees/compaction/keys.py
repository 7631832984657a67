"""The value that a table built from a compacted topic shows for a key, against the last record
of that key."""

from __future__ import annotations

FLOORS = """
LEFT JOIN floors ON floors.p = keyed.p AND keyed.invoke_ns >= floors.from_ns
  AND keyed.invoke_ns < floors.to_ns
"""

EXCUSE_COLUMNS = """keyed.acks, keyed.n_reads, partitions.unclean_on,
  COALESCE(floors.any_floor, 0) AS any_floor,
  COALESCE(floors.unclean_floor, 0) AS unclean_floor, floors.lost_floor"""

COMMITTED = "LEFT JOIN committed ON committed.value_id = keyed.value_id"
UNSERVED = """(keyed.log_slots = 1 AND (keyed.unserved = 1
  OR (committed.value_id IS NOT NULL AND keyed.rc_asked = 1 AND keyed.rc_whole = 0)))"""
"""A value that the final leader has once, and that a complete final pass over its offset did not
deliver. For a committed transaction, passes of readers of committed records count, too."""

LAST = """keyed.sure = 1 AND keyed.off = keyed.sure_off
  AND (keyed.open_n = 0 OR (keyed.open_tombstones = 0 AND partitions.unclean_on = 0
    AND partitions.lost_floor IS NULL AND COALESCE(keyed.shown_off, -1) < keyed.off))"""
"""The last certainly committed record of a key. A send of unknown outcome may be later, but then
the log must show that record, or this one. So the log lacks the last record if it shows none at or
behind this one. (Tombstones are removed in the end, and elections and disks may destroy a later
record.)"""

SHOWN = """
SELECT keyed.p, keyed.key, keyed.off, keyed.value_id, 'in the log' AS place,
  CAST(0 AS BIGINT) AS duration_ns
FROM keyed JOIN partitions ON partitions.p = keyed.p
WHERE partitions.has_log = 1 AND keyed.log_slots > 0 AND keyed.off = keyed.shown_off
  AND keyed.tombstone = 0
UNION ALL
SELECT key_passes.p, key_passes.key, keyed.off, keyed.value_id, 'in a pass', key_passes.duration_ns
FROM (SELECT keyed.p, keyed.key, reads.client, reads.session, reads.pass, MAX(reads.offset) AS off,
        MIN(passes.end_ns - passes.begin_ns) AS duration_ns
      FROM keyed JOIN reads ON reads.value_id = keyed.value_id
      JOIN passes ON passes.client = reads.client AND passes.session = reads.session
        AND passes.pass = reads.pass AND passes.topic_id = reads.topic_id
        AND passes.partition = reads.partition
      WHERE passes.final AND passes.complete AND keyed.last_off >= passes.from_offset
        AND keyed.last_off < passes.to_offset AND passes.client NOT IN (SELECT client FROM damaged)
      GROUP BY keyed.p, keyed.key, reads.client, reads.session, reads.pass) key_passes
JOIN keyed ON keyed.p = key_passes.p AND keyed.key = key_passes.key AND keyed.off = key_passes.off
  AND keyed.tombstone = 0
"""
"""The final value of a key: in the final leader's log, and in each final pass."""


def older(latest_is_tombstone: int, *, excused: str = "1 = 1") -> str:
    """Keys that show a value older than their last acknowledged record, one row each."""
    return f"""
SELECT MIN(shown_values.place) AS sub_kind, shown_values.p, shown_values.off,
  MIN(keyed.invoke_ns) AS at_ns, MIN(keyed.complete_ns) AS until_ns, shown_values.value_id,
  shown_values.key, MIN(keyed.value_id) AS latest_value_id, MIN(keyed.off) AS latest_off,
  MIN(keyed.acks) AS acks, MIN(keyed.n_reads) AS n_reads, MIN(partitions.unclean_on) AS unclean_on,
  MIN(COALESCE(floors.any_floor, 0)) AS any_floor,
  MIN(COALESCE(floors.unclean_floor, 0)) AS unclean_floor, MIN(floors.lost_floor) AS lost_floor
FROM ({SHOWN}) shown_values JOIN keyed ON keyed.p = shown_values.p AND keyed.key = shown_values.key
  JOIN partitions ON partitions.p = keyed.p {FLOORS}
WHERE {LAST} AND (keyed.open_n = 0 OR shown_values.place = 'in the log')
  AND shown_values.off < keyed.off AND keyed.tombstone = {latest_is_tombstone}
  AND keyed.off >= partitions.log_start AND {excused}
GROUP BY shown_values.p, shown_values.off, shown_values.value_id, shown_values.key"""


def latest(tombstone: int) -> str:
    """Keys whose last record is known."""
    return f"""
SELECT COUNT(*) AS n FROM keyed JOIN partitions ON partitions.p = keyed.p
WHERE {LAST} AND keyed.tombstone = {tombstone}
  AND keyed.off >= partitions.log_start"""
