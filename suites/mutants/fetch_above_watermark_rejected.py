"""Uses the high watermark as the upper bound of valid fetch offsets."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a fetch from above the high watermark is answered with OFFSET_OUT_OF_RANGE"
MODELS = "a range check against the high watermark instead of the log end"
SCENARIO = "epoch-truncation"
GUARANTEE = "nonmonotonic_poll"


def apply(mark: Mark) -> None:
    from urteil.broker.replication.partition_read import PartitionRead
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def read(partition: Any, wanted: Any, terms: Any, *rest: Any, **named: Any) -> Any:
            beyond = wanted.fetch_offset > partition.log.high_watermark
            if beyond and not terms.is_follower:
                mark.hit()
                return PartitionRead(error=ErrorCode.OFFSET_OUT_OF_RANGE)
            return original(partition, wanted, terms, *rest, **named)

        return read

    replace("urteil.broker.replication.partition_read:_read", make)
