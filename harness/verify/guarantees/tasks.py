"""Guarantees over the derived table `cluster_tasks`: tasks of the cluster, done in time or overdue.

A row names the task (`task`) and, if it is not done, the actual state (`shortfall`).
`derived/admin_tasks.py` defines when a task counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Explain, Guarantee, Occasion


def _explain(row: Mapping[str, Any]) -> str:
    return f"{row['task']}, but {row['shortfall']}."


def task_guarantee(
    *,
    name: str,
    rank: int,
    about: str,
    promise: str,
    source: str,
    sub_kinds: Mapping[str, str],
    not_counted: tuple[str, ...] = (),
    occasion: Occasion = Occasion.CONTROLLER_TASKS,
    not_required: str = "",
    explain: Explain = _explain,
) -> Guarantee:
    """A guarantee that is violated by each overdue task; its sub-kinds are the kinds of tasks.

    The row of a violation also has `recovery_s`, how long the task was overdue.
    """
    kinds = ", ".join(f"'{kind}'" for kind in sub_kinds)
    return Guarantee(
        name=name,
        rank=rank,
        split_from="slow_recovery",
        about=about,
        promise=promise,
        source=source,
        sub_kinds=sub_kinds,
        not_counted=not_counted,
        occasion=occasion,
        not_required=not_required,
        opportunities=f"SELECT COUNT(*) AS n FROM cluster_tasks WHERE kind IN ({kinds})",
        violations=f"""
SELECT kind AS sub_kind, p, CAST(NULL AS BIGINT) AS off, from_ns AS at_ns,
  to_ns AS until_ns, (to_ns - from_ns) / 1e9 AS recovery_s,
  limit_s AS deadline_s, task, shortfall
FROM cluster_tasks WHERE late = 1 AND kind IN ({kinds})""",
        explain=explain,
        tie="finding.task",
        compares_times=True,
        host_load_excuses=True,
        needs=("states",),
        reads=("cluster_tasks",),
        subjects=tuple(f"cluster_tasks.{kind}" for kind in sub_kinds),
        rests_on=("faults", "states"),
        no_reference=DERIVED,
    )
