"""A preferred leader leads after a request for its election, and regains leadership automatically.

`not elected`: the election was answered as successful (KIP-460), and by ZooKeeper's clock the
preferred leader never led from 2 s before the request until 2 s after the answer. `not given back`:
with auto.leader.rebalance.enable a preferred leader in sync did not lead after the check interval
and 10 s, although the imbalance was above leader.imbalance.per.broker.percentage. Moved replicas
and topics that are to be deleted do not count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.tasks import task_guarantee


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "not elected":
        return (
            f"An administrator requested {row['task']}, and the election was acknowledged, but "
            f"{row['shortfall']}."
        )
    long = f"{row['recovery_s']:.0f} s after nothing prevented it any more"
    return f"{row['task']}, but {row['shortfall']}, {long}."


GUARANTEE = task_guarantee(
    name="preferred_leader_ignored",
    rank=50,
    about="a preferred leader was not elected, or leadership did not return to it",
    promise="A preferred leader is elected before the request for it is answered, and leads again "
    "automatically where auto.leader.rebalance.enable is on.",
    source="Kafka documentation, 6.1 Basic Kafka Operations: Balancing leadership; KIP-460",
    sub_kinds={
        "not elected": (
            "by ZooKeeper's states the preferred leader never led from 2 s before the request "
            "until 2 s after its successful answer"
        ),
        "not given back": (
            "with `auto.leader.rebalance.enable` a preferred leader in sync did not lead for "
            "`leader.imbalance.check.interval.seconds` and 10 s, though that exceeds "
            "`leader.imbalance.per.broker.percentage`"
        ),
    },
    not_counted=(
        "`not given back` while replicas are being moved, and for topics that are being deleted.",
    ),
    explain=_explain,
)
