"""No broker or controller exits or stops to serve by itself.

Judged are brokers, and KRaft controllers that are nodes of their own, whose process the lab started
and watched. The lab expects the exit if a fault may end a node (a full disk, no file descriptors,
the loss of its last log directory)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Guarantee, Occasion


def _explain(row: Mapping[str, Any]) -> str:
    meanwhile = " while it started" if row["sub_kind"] == "starting" else ""
    kind = "Controller" if row["node"].startswith("q") else "Broker"
    if row["sub_kind"] == "closed":
        return (
            f"{kind} {row['node'][1:]} refuses connections at the end, and its process runs; its "
            f"last lines are in logs/{row['node']}.log."
        )
    return (
        f"{kind} {row['node'][1:]} exited{meanwhile} by itself, with exit code "
        f"{row['exit_code']}; its last lines are in logs/{row['node']}.log."
    )


GUARANTEE = Guarantee(
    name="unexpected_exit",
    rank=40,
    about="a broker or controller exited or stopped to serve by itself",
    promise="Failures of other nodes, of the network or of its own process do not end a broker or "
    "controller for good: it continues, or starts again.",
    source="Kafka documentation, 4.7 Replication: Kafka handles failures in the fail/recover model",
    sub_kinds={
        "running": "the node exited while it was running",
        "starting": "it exited while it started",
        "closed": "its process ran after healing, and its address refused connections",
    },
    details=(
        "Judged are brokers, and controllers of KRaft with nodes of their own, whose process the "
        "lab started and watches.",
    ),
    not_counted=(
        "Exits that a fault may cause: a full disk, no file descriptors, the last log directory "
        "gone, damage under a running node.",
        "What other programs may have done: SIGKILL, as the kernel sends it when memory is short, "
        "and SIGTERM, after which a node may exit with 0.",
        "Refused connections of a node whose last start did not come to an end.",
        "`starting` while another fault acts than the node's own, since a start needs other nodes.",
    ),
    occasion=Occasion.SAMPLES,
    opportunities="SELECT COUNT(*) AS n FROM broker_exits exits",
    violations="""
SELECT kind AS sub_kind, CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off, at_ns,
  at_ns AS until_ns, node, exit_code
FROM broker_exits WHERE kind IS NOT NULL""",
    explain=_explain,
    tie="finding.node, finding.exit_code",
    needs=("samples",),
    reads=("broker_exits",),
    rests_on=("samples", "faults"),
    no_reference=DERIVED,
)
