"""Uses the high watermark for every isolation level."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ListOffsets answers the high watermark under read_committed"
MODELS = "KAFKA-5522: ListOffsets ignored the last stable offset"
SCENARIO = "transactions"
GUARANTEE = "precommitted_read"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def readable_end(partition: Any, isolation: int | None) -> Any:
            if isolation == 1:
                mark.hit()
                isolation = 0
            return original(partition, isolation)

        return readable_end

    replace("urteil.broker.replication.offset_lookup:_readable_end", make)
