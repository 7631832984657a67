"""What is converted for an old reader lacks the last record of a batch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "batches that are converted for an old reader lose their last record"
MODELS = "a loop over the records of a batch that ends one too early"
SCENARIO = "old-clients"
GUARANTEE = "poll_skip"


def apply(mark: Mark) -> None:
    """Of a batch's records, if there are three and more, all but the last one become messages."""

    def make(original: Function) -> Function:
        def records(batch: Any) -> list[Any]:
            found = list(original(batch))
            if len(found) > 2:
                mark.hit()
                del found[-1]
            return found

        return records

    replace("urteil.broker.wire.downconversion:iter_stored_records", make)
