"""Drops the last record of each converted batch of three or more."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch that is converted for an old consumer loses its last record"
MODELS = "a loop over the records of a batch that ends one too early"
SCENARIO = "old-clients"
GUARANTEE = "poll_skip"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def records(batch: Any) -> list[Any]:
            result = list(original(batch))
            if len(result) > 2:
                mark.hit()
                del result[-1]
            return result

        return records

    replace("urteil.broker.wire.downconversion:iter_stored_records", make)
