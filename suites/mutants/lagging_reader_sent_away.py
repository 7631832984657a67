"""Who has read more than a new leader knows to be committed is told to begin anew."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a fetch from beyond the high watermark is out of range"
MODELS = "out of range where the log ends for readers, not where it ends"
SCENARIO = "epoch-truncation"
GUARANTEE = "nonmonotonic_poll"


def apply(mark: Mark) -> None:
    """The high watermark is the end."""
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
