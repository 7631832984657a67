"""Reports no follower as lagging."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a follower that stopped fetching stays in the ISR, and acks=all waits for it"
MODELS = "an ISR expiration task that died"
SCENARIO = "lagging-follower"
GUARANTEE = "no_progress"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def lags(partition: Any, broker_id: int, end: int, now_ms: float) -> bool:
            if original(partition, broker_id, end, now_ms):
                mark.hit()
            return False

        return lags

    replace("urteil.broker.replication.partition:Partition._lags", make)
