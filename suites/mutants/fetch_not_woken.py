"""Wakes no waiting consumer fetch before its timeout."""

from __future__ import annotations

import asyncio
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a waiting fetch of a consumer is not woken by new records"
MODELS = "a purgatory whose watchers are never woken"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def wait(manager: Any, terms: Any, wanted: Any) -> None:
            if terms.is_follower:
                await original(manager, terms, wanted)
                return
            mark.hit()
            await asyncio.sleep(terms.max_wait_ms / 1000)

        return wait

    replace("urteil.broker.replication.replica_manager:ReplicaManager._wait", make)
