"""Omits the full UpdateMetadata to a broker that joins."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker that joins gets no metadata of partitions that it has no replica of"
MODELS = "the controller's first UpdateMetadata that is not sent"
SCENARIO = "indexes"
GUARANTEE = "disagreement"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def update_metadata(batch: Any, tps: Any, brokers: Any = None) -> None:
            if brokers is None:
                original(batch, tps)
            else:
                mark.hit()

        return update_metadata

    replace("urteil.broker.controller.request_batch:RequestBatch.update_metadata", make)
