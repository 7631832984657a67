"""ListOffsets tells readers of committed records the high watermark."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ListOffsets answers the high watermark also under read_committed"
MODELS = "KAFKA-5522: ListOffsets did not take the last stable offset into account"
SCENARIO = "transactions"
GUARANTEE = "precommitted_read"


def apply(mark: Mark) -> None:
    """Every isolation is told the same end."""

    def make(original: Function) -> Function:
        def readable_end(partition: Any, isolation: int | None) -> Any:
            if isolation == 1:
                mark.hit()
                isolation = 0
            return original(partition, isolation)

        return readable_end

    replace("urteil.broker.replication.offset_lookup:_readable_end", make)
