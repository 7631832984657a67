"""A fetch waits as long as it may, whatever comes meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "fetches that wait do not hear of what is written"
MODELS = "a purgatory whose watchers nobody wakes"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Consumers alone: followers hear at once."""

    def make(original: Function) -> Function:
        async def wait(manager: Any, terms: Any, wanted: Any) -> None:
            if terms.is_follower:
                await original(manager, terms, wanted)
                return
            mark.hit()
            await asyncio.sleep(terms.max_wait_ms / 1000)

        return wait

    replace("urteil.broker.replication.replica_manager:ReplicaManager._wait", make)
