"""SQL over the derived table `cluster_tasks`: tasks of the cluster, each done in time or overdue.

A row names the duty (`asked`) and, where it is not done, the state that remained (`stands`).
`derived/admin_tasks.py` says when a duty counts.
"""

from __future__ import annotations

TASK_TABLES = ("faults", "states")


def count_tasks(*kinds: str) -> str:
    """The opportunities: all duties of these kinds."""
    return f"SELECT COUNT(*) AS n FROM cluster_tasks WHERE kind IN ({_quote(kinds)})"


def overdue_tasks(*kinds: str) -> str:
    """The violations: the overdue duties of these kinds; `recovery_s` is how long they lasted."""
    return f"""
SELECT kind AS sub_kind, p, CAST(NULL AS BIGINT) AS off, from_ns AS at_ns,
  to_ns AS until_ns, (to_ns - from_ns) / 1e9 AS recovery_s,
  limit_s AS deadline_s, asked, stands
FROM cluster_tasks WHERE late = 1 AND kind IN ({_quote(kinds)})"""


def _quote(kinds: tuple[str, ...]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)
