"""Appends of coordinators that wait for no follower."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.suites.mutants.patching import Mark


class Hasty:
    """The replicas, without a wait for followers."""

    def __init__(self, replicas: Any, mark: Mark) -> None:
        self._replicas = replicas
        self._mark = mark

    async def append(
        self, timeout_ms: int, acks: int, batches: Mapping[Any, Any], **kwargs: Any
    ) -> Any:
        self._mark.hit()
        return await self._replicas.append(timeout_ms, 1, batches, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._replicas, name)
