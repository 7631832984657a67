"""A producer's sequences in one partition and epoch follow one another.

In the final leader's log, where it was not compacted. The first one may be any: what came before
may have been deleted, and a broker that knows nothing of a producer takes what it is given.
"""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import EPOCH, Guarantee, place

_JUDGED = """
FROM slots s JOIN parts q ON q.p = s.p
WHERE s.on_leader = 1 AND s.pseq IS NOT NULL AND q.compacted = 0
"""
_LAST = EPOCH // 2 - 1

GUARANTEE = Guarantee(
    name="sequence_gap",
    about="a producer's sequence numbers in a log are not contiguous",
    promise="The broker accepts a produce request only if its sequence number is exactly one "
    "greater than the last committed message from that producer and partition.",
    source="KIP-98: Idempotent Producer Guarantees",
    opportunities=f"SELECT COUNT(*) AS n {_JUDGED}",
    violations=f"""
SELECT CASE WHEN g.pepoch < g.prev_epoch THEN 'epoch fell'
    WHEN g.seq <= g.prev_seq THEN 'repeated' ELSE 'gap' END AS sub_kind,
  g.p, g.off, CAST(NULL AS BIGINT) AS at_ns, CAST(NULL AS BIGINT) AS until_ns, g.value_id, g.pid,
  g.pepoch, g.seq, g.prev_epoch, g.prev_seq
FROM (SELECT s.p, s.off, s.value_id, s.pid, s.pseq DIV {EPOCH} AS pepoch, s.pseq % {EPOCH} AS seq,
        LAG(s.pseq DIV {EPOCH}) OVER w AS prev_epoch, LAG(s.pseq % {EPOCH}) OVER w AS prev_seq
      {_JUDGED} WINDOW w AS (PARTITION BY s.p, s.pid ORDER BY s.off)) g
WHERE g.pepoch < g.prev_epoch
  OR (g.pepoch = g.prev_epoch AND g.seq <> g.prev_seq + 1
      AND NOT (g.prev_seq = {_LAST} AND g.seq = 0))""",
    explain=lambda row: (
        f"At {place(row)} producer {row['pid']} goes from epoch {row['prev_epoch']}, sequence "
        f"{row['prev_seq']} to epoch {row['pepoch']}, sequence {row['seq']}."
    ),
    needs=("replicas", "logs"),
    rests_on=("replicas", "logs"),
    sub_kinds=("gap", "repeated", "epoch fell"),
)
