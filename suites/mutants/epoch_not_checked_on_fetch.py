"""Reports no log as diverging."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a fetch is answered whatever the leader epoch of the follower's last record"
MODELS = "before KIP-320: fetches without leader epochs, so that diverging logs stay undetected"
SCENARIO = "cut-crash"
GUARANTEE = "replica_divergence"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def divergence(partition: Any, wanted: Any) -> None:
            if original(partition, wanted) is not None:
                mark.hit()

        return divergence

    replace("urteil.broker.replication.partition_read:_divergence", make)
