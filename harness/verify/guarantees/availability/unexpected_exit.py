"""No broker exits by itself.

Judged are brokers whose process the lab started and watched. Where a fault may end a broker (a
full disk, no file descriptors, its last log directory gone), the lab expects the exit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Guarantee, Occasion


def _explain(row: Mapping[str, Any]) -> str:
    meanwhile = " while it started" if row["sub_kind"] == "starting" else ""
    return (
        f"Broker {row['broker'][1:]} exited{meanwhile} by itself, with exit code "
        f"{row['exit_code']}; its last lines are in logs/{row['broker']}.log."
    )


GUARANTEE = Guarantee(
    name="unexpected_exit",
    rank=40,
    about="a broker exited by itself",
    promise="Failures of other brokers, of ZooKeeper, of the network or of a broker's own process "
    "do not end the broker for good: it continues, or starts again.",
    source="Kafka documentation, 4.7 Replication: Kafka handles failures in the fail/recover model",
    sub_kinds={
        "running": "the broker exited while it was running",
        "starting": "it exited while it started",
    },
    details=("Judged are brokers whose process the lab started and watches.",),
    not_counted=(
        "Exits that a fault may cause: a full disk, no file descriptors, the last log directory "
        "gone, damage under a running broker.",
        "What other programs may have done: SIGKILL, as the kernel sends it when memory is short, "
        "and SIGTERM, after which a broker may exit with 0.",
        "`starting` while another fault acts than the broker's own, since a start needs other "
        "nodes.",
    ),
    occasion=Occasion.SAMPLES,
    opportunities="SELECT COUNT(*) AS n FROM broker_exits exits",
    violations="""
SELECT kind AS sub_kind, CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off, at_ns,
  at_ns AS until_ns, broker, exit_code
FROM broker_exits WHERE exit_code IS NOT NULL""",
    explain=_explain,
    tie="finding.broker, finding.exit_code",
    needs=("samples",),
    reads=("broker_exits",),
    rests_on=("samples", "faults"),
    no_reference=DERIVED,
)
