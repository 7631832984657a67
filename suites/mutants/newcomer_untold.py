"""A broker that comes back hears only of what changes from then on."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker that joins is not told who leads what it has no replica of"
MODELS = "the controller's first UpdateMetadata to a broker that came is left out"
SCENARIO = "indexes"
GUARANTEE = "disagreement"


def apply(mark: Mark) -> None:
    """Nobody is told of everything."""

    def make(original: Function) -> Function:
        def update_metadata(batch: Any, tps: Any, brokers: Any = None) -> None:
            if brokers is None:
                original(batch, tps)
            else:
                mark.hit()

        return update_metadata

    replace("urteil.broker.controller.requests:RequestBatch.update_metadata", make)
