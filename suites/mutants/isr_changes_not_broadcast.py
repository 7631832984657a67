"""Omits partitions whose ISR changed from UpdateMetadata."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the controller does not send ISR changes to the other brokers"
MODELS = "KIP-497: AlterPartition without an UpdateMetadata after it"
SCENARIO = "indexes"
GUARANTEE = "disagreement"


class _Silent:
    """A desk whose batches take no news of partitions."""

    def __init__(self, desk: Any, mark: Mark) -> None:
        self._desk, self._mark = desk, mark

    def batch(self) -> Any:
        batch, mark = self._desk.batch(), self._mark
        batch.update_metadata = lambda _tps: mark.hit()
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._desk, name)


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def alter(tenure: Any, *given: Any, **more: Any) -> Any:
            desk = tenure._desk
            tenure._desk = _Silent(desk, mark)
            try:
                return await original(tenure, *given, **more)
            finally:
                tenure._desk = desk

        return alter

    replace("urteil.broker.controller.tenure:Tenure.alter_partition", make)
