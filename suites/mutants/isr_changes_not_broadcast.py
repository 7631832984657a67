"""Omits partitions whose ISR changed from UpdateMetadata."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the controller does not send ISR changes to the other brokers"
MODELS = "KIP-497: AlterPartition without an UpdateMetadata after it"
SCENARIO = "indexes"
GUARANTEE = "disagreement"


class _Silent:
    """A services whose batches take no news of partitions."""

    def __init__(self, services: Any, mark: Mark) -> None:
        self._services, self._mark = services, mark

    def batch(self) -> Any:
        batch, mark = self._services.batch(), self._mark
        batch.update_metadata = lambda _tps: mark.hit()
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._services, name)


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def alter(term: Any, *given: Any, **more: Any) -> Any:
            services = term._services
            term._services = _Silent(services, mark)
            try:
                return await original(term, *given, **more)
            finally:
                term._services = services

        return alter

    replace("urteil.broker.controller.term:Term.alter_partition", make)
