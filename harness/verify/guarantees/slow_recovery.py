"""After healing, every partition is led and has its full ISR again before the deadline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee


def _explain(row: Mapping[str, Any]) -> str:
    took = row["recovery_s"]
    told = "was not whole again" if took is None else f"took {float(took):.1f} s to be whole again"
    return (
        f"After {row['fault']} on {row['targets']} was healed, the cluster {told}, the last of it "
        f"{row['topic']}-{row['partition']}."
    )


GUARANTEE = Guarantee(
    name="slow_recovery",
    about="the cluster was not whole again before the scenario's deadline",
    promise="A replica that fell out of the in-sync set catches up and joins it again.",
    source="Kafka documentation, 4.7 Replication; the deadline is the scenario's",
    opportunities="SELECT COUNT(*) AS n FROM recoveries r WHERE r.judged = 1",
    violations="""
SELECT 'late' AS sub_kind, r.p, CAST(NULL AS BIGINT) AS off,
  r.healed_ns AS at_ns, r.healed_ns AS until_ns, r.fault, r.targets, r.recovery_s, r.deadline_s
FROM recoveries r WHERE r.judged = 1 AND COALESCE(r.recovery_s, 1000000.0) > r.deadline_s""",
    explain=_explain,
    needs=("faults", "states"),
    rests_on=("faults", "states"),
    sub_kinds=("late",),
    tie="j.fault, j.targets",
)
