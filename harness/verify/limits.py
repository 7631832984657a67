"""Numbers and SQL that derived tables, shared tables and guarantees have in common.

It imports numbers only, so that guarantees can be read, and their reference checks run, without
Arrow and an engine.
"""

from __future__ import annotations

from urteil.harness.evidence import limits

FOREVER_NS = limits.FOREVER_NS

SECOND_NS = 1_000_000_000

NO_OFFSET = 1 << 47
"""Beyond every offset that can be judged."""

CLOCK_SLACK_NS = 2_000_000_000
"""ZooKeeper stamps transactions in wall ms; an epoch may seem to begin this much too early."""

STOPPING_NS = 15_000_000_000
"""So long after the last phase brokers may still delete and clean, until they are stopped."""

CUT_SHORT, FORGOTTEN = 1, 2
"""How a coordinator ended a transaction too early (derived/early_aborts.py)."""

BUCKET = 1 << 5
"""Offsets in a bucket of the shared tables."""

TICK_NS = 100_000_000
"""The length of a tick of the shared tables."""

WAITS = f"""COALESCE(v.complete_ns, CASE WHEN v.client IN (SELECT k.client FROM killed k)
  THEN v.invoke_ns ELSE {FOREVER_NS} END)"""
"""Until when a client waited for a send's answer: a killed client waits no more."""

REFUSED = (
    "v.outcome = 'fail' AND ("
    + " OR ".join(
        f"UPPER(REPLACE(COALESCE(v.error, ''), '_', '')) LIKE '%{word}%'"
        for word in ("TOOLARGE", "INVALID", "CORRUPT", "AUTHORIZATION", "OUTOFORDER", "UNSUPPORTED")
    )
    + ")"
)
"""Rejected for its content: the broker that answers so is available."""

ENDED = """
SELECT s.p, s.off, s.slot, s.value_id, MIN(CASE WHEN s.marks >= 2 THEN s.marks END) OVER (
    PARTITION BY s.p, s.pid, s.turn ORDER BY s.off DESC, s.marks DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS ended, s.marks
FROM (SELECT s.p, s.off, s.slot, s.value_id, s.pid, s.marks,
        COALESCE(SUM(CASE WHEN s.marks >= 2 THEN 1 ELSE 0 END) OVER (PARTITION BY s.p, s.pid
          ORDER BY s.off, s.marks ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS turn
      FROM slots s WHERE s.on_leader = 1 AND s.marks >= 1) s
"""
"""Transactional records in the final leader's log with what their producer's next marker is there,
if there is one: 4 and more of an abort."""

OWED = "(v.txn IS NULL OR t.txn IS NOT NULL)"
"""What is in no transaction, or in one that was committed (`t`, of `known_commits`)."""

OF_COMMIT = """LEFT JOIN known_commits t
  ON t.client = v.client AND t.session = v.session AND t.txn = v.txn"""
