"""What a leader had written into the ISR stays between it and the controller."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "brokers are told of no ISR that its leader changed"
MODELS = "AlterPartition without an UpdateMetadata after it (KIP-497)"
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
    """Leave them out of what goes to all."""

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
