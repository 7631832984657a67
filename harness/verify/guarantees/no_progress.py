"""A cluster that keeps its majority keeps serving.

Judged only where the scenario says that its settings survive: crashes and full isolations
(ZooKeeper too) of a minority, and one broker that does not reach another one, which reaches it (a
follower that can fetch nothing has to leave the ISR); alone and on a whole cluster, counted from
session timeout plus 1.5 x replica.lag.time.max.ms on, or from when a client gives up on the old
leader, if later; and only where somebody was sending to the partition for the last two seconds of
it.
"""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.plan import TICK_NS
from urteil.harness.verify.timeline import FOREVER_NS

_WAIT_NS = 2_000_000_000

_WAITS = f"""COALESCE(v.complete_ns, CASE WHEN v.client IN (SELECT k.client FROM killed k)
  THEN v.invoke_ns ELSE {FOREVER_NS} END)"""
"""Until when somebody waited for a send's answer: a client that was killed waits no more."""

_REFUSED = (
    "v.outcome = 'fail' AND ("
    + " OR ".join(
        f"UPPER(REPLACE(COALESCE(v.error, ''), '_', '')) LIKE '%{word}%'"
        for word in ("TOOLARGE", "INVALID", "CORRUPT", "AUTHORIZATION", "OUTOFORDER", "UNSUPPORTED")
    )
    + ")"
)
"""Refused for what it is: whoever says so is there."""

_TRIED = f"""
FROM trials t JOIN (SELECT k.p, MIN(k.first_ns) AS first_ns FROM ticks k GROUP BY k.p) b
  ON b.p = t.p AND b.first_ns < t.begin_ns
JOIN (SELECT DISTINCT a.n, a.p
      FROM trials a JOIN (SELECT v.sent_p AS p, MIN(v.invoke_ns) AS first_ns,
                            MAX({_WAITS}) AS last_ns
                          FROM vals v WHERE NOT ({_REFUSED})
                          GROUP BY v.sent_p, v.invoke_ns DIV {TICK_NS}) w
        ON w.p = a.p AND w.first_ns <= a.to_ns - {_WAIT_NS} AND w.last_ns >= a.from_ns) s
  ON s.n = t.n AND s.p = t.p
"""

GUARANTEE = Guarantee(
    name="no_progress",
    about="no acknowledgement through a fault that the settings promise to survive",
    promise="With N replicas and min.insync.replicas of M, a partition stays available for writes "
    "through the failure of N-M brokers, once leadership has moved.",
    source="Kafka documentation, 4.7 Replication: Availability and Durability Guarantees",
    opportunities=f"SELECT COUNT(*) AS n {_TRIED}",
    violations=f"""
SELECT 'stalled' AS sub_kind, o.p, CAST(NULL AS BIGINT) AS off, o.from_ns AS at_ns,
  o.to_ns AS until_ns, o.fault, o.targets,
  CAST(o.to_ns - o.from_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS silent_s
FROM (SELECT t.* {_TRIED}) o
WHERE NOT EXISTS (SELECT 1 FROM ticks k WHERE k.p = o.p AND k.last_ns >= o.from_ns
                  AND k.first_ns <= o.to_ns)""",
    explain=lambda row: (
        f"{row['topic']}-{row['partition']} acknowledged nothing for the last "
        f"{float(row['silent_s']):.1f} s of {row['fault']} on {row['targets']}, although a "
        "majority was alive and the time to move leadership had passed."
    ),
    needs=("sends", "faults"),
    rests_on=("sends", "faults", "states"),
    sub_kinds=("stalled",),
    tie="j.fault, j.targets",
)
