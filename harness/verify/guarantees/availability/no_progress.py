"""A cluster with a majority of its nodes continues to serve.

Judged only where the scenario declares that its settings survive its faults. These are crashes
and full isolations of a minority (ZooKeeper included), and one broker that cannot reach another
while that one can reach it (a follower that cannot fetch has to leave the ISR). Each is judged
alone, on a complete cluster, from session timeout plus 1.5 x replica.lag.time.max.ms on, or from
when a client gives up on the old leader, if that is later; and only while a client was sending
to the partition for the last two seconds of that time.

After healing, with all replicas back, records for which two producers still wait have to be
acknowledged, or other records of that partition. Also without faults: a partition whose replicas
are all in sync does not stop, and not all transactions fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.limits import REFUSED, WAITS

_WAIT_NS = 2_000_000_000

_BEGUN = "(SELECT k.p, MIN(k.first_ns) AS first_ns FROM ticks k GROUP BY k.p)"
"""The first acknowledgement of each partition."""

_TRIED = f"""
FROM progress_in_faults t JOIN {_BEGUN} b ON b.p = t.p AND b.first_ns < t.begin_ns
JOIN (SELECT DISTINCT a.n, a.p
      FROM progress_in_faults a JOIN write_attempts w
        ON w.p = a.p AND w.first_ns <= a.to_ns - {_WAIT_NS} AND w.last_ns >= a.from_ns) s
  ON s.n = t.n AND s.p = t.p
"""
"""Faults and partitions to which clients were sending at the end, and had sent before."""

_RESUMED = f"""
FROM (SELECT t.*, COALESCE(e.n, 0) AS beats,
        CASE WHEN t.to_ns - t.from_ns >= {_WAIT_NS} THEN COALESCE(s.waiting, 0) ELSE 0 END
          AS waiting
      FROM progress_after_faults t JOIN {_BEGUN} b ON b.p = t.p AND b.first_ns < t.whole_ns
      LEFT JOIN (SELECT a.p, COUNT(*) AS n FROM progress_after_faults a JOIN ticks k
                   ON k.p = a.p AND k.last_ns >= a.whole_ns AND k.first_ns <= a.to_ns
                 GROUP BY a.p) e ON e.p = t.p
      LEFT JOIN (SELECT a.p, COUNT(DISTINCT v.client) AS waiting
                 FROM progress_after_faults a JOIN vals v ON v.sent_p = a.p
                 JOIN clients c ON c.client = v.client AND c.session = v.session
                  AND c.kind = 'producer' AND c.transactional_id IS NULL AND c.end_ns >= a.to_ns
                 WHERE v.invoke_ns <= a.to_ns - {_WAIT_NS} AND {WAITS} >= a.from_ns
                   AND NOT ({REFUSED})
                 GROUP BY a.p) s ON s.p = t.p) o
WHERE (o.beats > 0 OR o.waiting > 1)
"""
"""Healed partitions that acknowledged records again, or for which two producers waited."""


_STOPPED = f"""
FROM (SELECT o.p, o.since_ns, o.to_ns, COUNT(DISTINCT v.client) AS waiting
      FROM (SELECT t.p, t.to_ns, t.bound_ns,
              GREATEST(t.from_ns, COALESCE(MAX(k.last_ns), t.from_ns)) AS since_ns
            FROM progress_without_faults t LEFT JOIN ticks k ON k.p = t.p AND k.first_ns <= t.to_ns
            GROUP BY t.p, t.from_ns, t.to_ns, t.bound_ns) o
      JOIN vals v ON v.sent_p = o.p
      JOIN clients c ON c.client = v.client AND c.session = v.session
        AND c.kind = 'producer' AND c.transactional_id IS NULL
        AND c.end_ns >= o.since_ns + o.bound_ns
      WHERE o.to_ns - o.since_ns >= o.bound_ns AND v.invoke_ns <= o.since_ns + {_WAIT_NS}
        AND {WAITS} >= o.since_ns + o.bound_ns AND NOT ({REFUSED})
      GROUP BY o.p, o.since_ns, o.to_ns) d
WHERE d.waiting > 1
"""
"""Partitions without a fault for which two producers waited longer than they may have to."""


def _explain(row: Mapping[str, Any]) -> str:
    place, fault = f"{row['topic']}-{row['partition']}", f"{row['fault']} on {row['targets']}"
    for_s = f"{float(row['silent_s']):.1f} s"
    if row["sub_kind"] == "transactions stopped":
        of = f" of group {row['grp']}" if row["grp"] else ""
        return (
            f"No transaction{of} ended as its client requested in {for_s}, when no fault acted and "
            f"every replica was in sync, although {row['waiting']} were tried."
        )
    if row["sub_kind"] == "stopped":
        return (
            f"{place} acknowledged nothing for {for_s}, in which no fault acted and every replica "
            f"was in sync, although {row['waiting']} producers waited for it."
        )
    if row["sub_kind"] == "not resumed":
        return (
            f"{place} acknowledged nothing in the {for_s} after {fault} was healed and every "
            f"replica was in sync again, although {row['waiting']} producers waited for it."
        )
    return (
        f"{place} acknowledged nothing for the last {for_s} of {fault}, although a majority was "
        "alive and the time to move leadership had passed."
    )


GUARANTEE = Guarantee(
    name="no_progress",
    rank=10,
    about="no acknowledgement during a fault that the settings promise to survive",
    promise="With N replicas and min.insync.replicas of M, a partition stays available for writes "
    "through the failure of N-M brokers, once leadership has moved.",
    source="Kafka documentation, 4.7 Replication: Availability and Durability Guarantees",
    sub_kinds={
        "stalled": "no acknowledgement during a fault, after the time to move leadership",
        "not resumed": "no acknowledgement after healing, although two producers waited",
        "stopped": (
            "for that time and 5 s more it acknowledged nothing although no fault acted, every "
            "replica was in sync, and two plain producers waited"
        ),
        "transactions stopped": (
            "in such a time no transaction ended as its client had requested, though two clients "
            "tried three or more, or one tried six. Transactions that move one group's offsets "
            "and others are judged apart. Fenced clients do not count"
        ),
    },
    details=(
        "During a fault: a partition with traffic acknowledged nothing from session timeout + 1.5 "
        "x replica.lag.time.max.ms + 1 s after the fault's begin until its end. The wait is at "
        "least the client's request timeout.",
        "After the last fault: it acknowledged nothing from healing with full ISRs until its "
        "producers ended, at least session timeout + request timeout + 5 s later, though two "
        "plain producers waited.",
    ),
    not_counted=(
        "Scenarios without `survives`.",
        "Faults other than these, alone and on a complete cluster, with at least 2 s left: crash "
        "or shutdown of a minority, failed log directories of a minority, isolation of one broker "
        "from brokers and ZooKeeper, and a one-way cut from a broker to another.",
        "After the last fault, times in which a quota was set.",
        "Partitions to which no client was sending in time: sends of killed clients and sends "
        "rejected for their content do not count.",
        "Deleted topics.",
    ),
    opportunities=f"""SELECT SUM(b.n) AS n FROM (SELECT COUNT(*) AS n {_TRIED}
      UNION ALL SELECT COUNT(*) AS n {_RESUMED}
      UNION ALL SELECT COUNT(*) FROM progress_without_faults t
      JOIN {_BEGUN} b ON b.p = t.p AND b.first_ns < t.to_ns
      UNION ALL SELECT COUNT(*) FROM transaction_progress t) b""",
    violations=f"""
SELECT 'stalled' AS sub_kind, o.p, CAST(NULL AS BIGINT) AS off, o.from_ns AS at_ns,
  o.to_ns AS until_ns, o.fault, o.targets,
  CAST(o.to_ns - o.from_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS silent_s,
  CAST(NULL AS BIGINT) AS waiting, CAST(NULL AS STRING) AS grp
FROM (SELECT t.* {_TRIED}) o
WHERE NOT EXISTS (SELECT 1 FROM ticks k WHERE k.p = o.p AND k.last_ns >= o.from_ns
                  AND k.first_ns <= o.to_ns)
UNION ALL
SELECT 'not resumed', o.p, CAST(NULL AS BIGINT), o.whole_ns, o.to_ns, o.fault, o.targets,
  CAST(o.to_ns - o.whole_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE), o.waiting, NULL
{_RESUMED} AND o.beats = 0
UNION ALL
SELECT 'stopped', d.p, CAST(NULL AS BIGINT), d.since_ns, d.to_ns, CAST(NULL AS STRING),
  CAST(NULL AS STRING), CAST(d.to_ns - d.since_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE),
  d.waiting, NULL {_STOPPED}
UNION ALL
SELECT 'transactions stopped', CAST(NULL AS INT), NULL, t.from_ns, t.to_ns, NULL, NULL,
  CAST(t.to_ns - t.from_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE), CAST(t.tried AS BIGINT), t.grp
FROM transaction_progress t WHERE t.ended = 0 AND t.tried > 2 AND (t.clients > 1 OR t.tried > 5)""",
    explain=_explain,
    tie="j.fault, j.targets, j.grp",
    compares_times=True,
    host_load_excuses=True,
    needs=("sends",),
    reads=(
        *("vals", "write_attempts", "ticks", "killed", "clients", "progress_in_faults"),
        *("progress_after_faults", "progress_without_faults", "transaction_progress"),
    ),
    rests_on=("sends", "faults", "states", "clients"),
    subjects=(
        *("progress_in_faults", "progress_after_faults"),
        *("progress_without_faults", "transaction_progress"),
    ),
)
