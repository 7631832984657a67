"""Appends commits with acks=1."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a commit is answered before its record is replicated"
MODELS = "offsets.commit.required.acks=1"
SCENARIO = "cut-coordinator"
GUARANTEE = "commit_went_back"


class Hasty:
    """The replicas, but nobody waits for the followers."""

    def __init__(self, replicas: Any, mark: Mark) -> None:
        self._replicas = replicas
        self._mark = mark

    async def append(
        self, timeout_ms: int, acks: int, batches: Mapping[Any, Any], **more: Any
    ) -> Any:
        self._mark.hit()
        return await self._replicas.append(timeout_ms, 1, batches, **more)


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def append(coordinator: Any, *args: Any, **more: Any) -> Any:
            hasty = copy.copy(coordinator)
            hasty._replicas = Hasty(coordinator._replicas, mark)
            return await original(hasty, *args, **more)

        return append

    replace("urteil.broker.groups.coordinator:GroupCoordinator.append", make)
