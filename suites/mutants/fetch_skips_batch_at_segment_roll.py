"""Moves consumer fetches from a segment's base offset past its first batch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a fetch from the base offset of any segment but the first skips one batch"
MODELS = "a reader that loses its place between two segment files"
SCENARIO = "indexes"
GUARANTEE = "poll_skip"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def read(partition: Any, wanted: Any, terms: Any, *rest: Any, **named: Any) -> Any:
            import dataclasses

            at, log = wanted.fetch_offset, partition.log
            rolled = {segment.base_offset for segment in list(log.segments)[1:]}
            if not terms.is_follower and at in rolled and at + 1 < log.high_watermark:
                mark.hit()
                wanted = dataclasses.replace(wanted, fetch_offset=at + 1)
            return original(partition, wanted, terms, *rest, **named)

        return read

    replace("urteil.broker.replication.partition_read:_read", make)
