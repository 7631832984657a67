"""After a fault is healed, the cluster becomes healthy before the scenario's deadline.

A cluster is healthy when each partition has a leader and its complete ISR. A recovery during which
another fault began is measured and not judged; nor is a recovery judged that the run did not
observe until the deadline (`derived/impact.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Guarantee


def _explain(row: Mapping[str, Any]) -> str:
    recovery_s = row["recovery_s"]
    delay = (
        "was not healthy again"
        if recovery_s is None
        else f"took {float(recovery_s):.1f} s to be healthy again"
    )
    return (
        f"After {row['fault']} on {row['targets']} was healed, the cluster {delay}, the last of it "
        f"{row['topic']}-{row['partition']}."
    )


GUARANTEE = Guarantee(
    name="slow_recovery",
    rank=30,
    about="after healing, the cluster was not healthy at the deadline",
    promise="After a failure each partition has a leader again, and a replica that left the "
    "in-sync set catches up and joins it again.",
    source="Kafka documentation, 4.7 Replication; the deadline is the scenario's",
    sub_kinds={
        "late": (
            "after healing, a partition had no leader or no complete ISR for longer than the "
            "scenario's deadline"
        ),
    },
    not_counted=(
        "Recoveries during which another fault began, and runs that ended before the deadline.",
    ),
    opportunities="SELECT COUNT(*) AS n FROM recoveries WHERE judged = 1",
    violations="""
SELECT 'late' AS sub_kind, p, CAST(NULL AS BIGINT) AS off,
  healed_ns AS at_ns, healed_ns AS until_ns, fault, targets, recovery_s, deadline_s
FROM recoveries WHERE judged = 1 AND COALESCE(recovery_s, 1e6) > deadline_s""",
    explain=_explain,
    tie="finding.fault, finding.targets",
    compares_times=True,
    host_load_excuses=True,
    needs=("states",),
    reads=("recoveries",),
    subjects=("recoveries",),
    rests_on=("faults", "states"),
    no_reference=DERIVED,
)
