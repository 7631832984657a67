"""Compares file times in seconds with a limit in milliseconds."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "every closed segment counts as expired, by the time of its file"
MODELS = "before KIP-33: deletion by the time of the file"
SCENARIO = "retention"
GUARANTEE = "retained_too_short"
MAX_RELATIVE_OFFSET = 2**31 - 1


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def largest_timestamp_ms(segment: Any) -> int:
            if segment.bound > segment.base_offset + MAX_RELATIVE_OFFSET:  # it is appended to
                return int(original(segment))
            mark.hit()
            return int(segment.file.modified_ms() // 1000)

        return largest_timestamp_ms

    replace("urteil.broker.log.segment:LogSegment.largest_timestamp_ms", make)
