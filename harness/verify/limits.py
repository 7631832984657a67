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

WAITS = f"""COALESCE(records.complete_ns,
  CASE WHEN records.client IN (SELECT killed.client FROM killed)
  THEN records.invoke_ns ELSE {FOREVER_NS} END)"""
"""Until when a client waited for a send's answer: a killed client waits no more."""

REFUSALS = ("TOOLARGE", "INVALID", "CORRUPT", "AUTHORIZATION", "OUTOFORDER", "UNSUPPORTED")
"""Words in the errors by which a broker rejects a record for its content."""

REFUSED = (
    "records.outcome = 'fail' AND ("
    + " OR ".join(
        f"UPPER(REPLACE(COALESCE(records.error, ''), '_', '')) LIKE '%{word}%'" for word in REFUSALS
    )
    + ")"
)
"""Rejected for its content: the broker that answers so is available."""

ENDED = """
SELECT turns.p, turns.off, turns.slot, turns.value_id,
  MIN(CASE WHEN turns.marks >= 2 THEN turns.marks END) OVER (
    PARTITION BY turns.p, turns.pid, turns.turn ORDER BY turns.off DESC, turns.marks DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS ended, turns.marks
FROM (SELECT slots.p, slots.off, slots.slot, slots.value_id, slots.pid, slots.marks,
        COALESCE(SUM(CASE WHEN slots.marks >= 2 THEN 1 ELSE 0 END) OVER (PARTITION BY slots.p,
            slots.pid
          ORDER BY slots.off, slots.marks ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
            0) AS turn
      FROM slots WHERE slots.on_leader = 1 AND slots.marks >= 1) turns
"""
"""Transactional records in the final leader's log with what their producer's next marker is there,
if there is one: 4 and more of an abort."""

OWED = "(records.txn IS NULL OR known_commits.txn IS NOT NULL)"
"""What is in no transaction, or in one that was committed (OF_COMMIT)."""

OF_COMMIT = """LEFT JOIN known_commits
  ON known_commits.client = records.client AND known_commits.session = records.session
    AND known_commits.txn = records.txn"""


def epoch_of(ident: str) -> str:
    """SQL for the leader epoch in a record's `ident` (shared_tables.py); -1 for a record without
    one, which has message format 0 or 1."""
    return f"CASE WHEN {ident} < 0 THEN -1 ELSE {ident} DIV {1 << 32} END"
