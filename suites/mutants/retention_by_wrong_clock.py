"""Retention goes by the time of a segment's file, and takes its seconds for milliseconds."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "every closed segment is too old as soon as its age is asked for"
MODELS = "deletion by the time of a file, which a restored one has from elsewhere (before KIP-33)"
SCENARIO = "retention"
GUARANTEE = "retained_too_short"
MAX_RELATIVE_OFFSET = 2**31 - 1


def apply(mark: Mark) -> None:
    """Whatever the records' own times say."""

    def make(original: Function) -> Function:
        def largest_timestamp_ms(segment: Any) -> int:
            if segment.bound > segment.base_offset + MAX_RELATIVE_OFFSET:  # it is appended to
                return int(original(segment))
            mark.hit()
            return int(segment.file.modified_ms() // 1000)

        return largest_timestamp_ms

    replace("urteil.broker.log.segment:LogSegment.largest_timestamp_ms", make)
