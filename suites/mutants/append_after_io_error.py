"""Hides storage errors from the segment's caller."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "an append that the disk rejected counts as written, and later appends follow it"
MODELS = "KAFKA-10778: appends after an I/O error"
SCENARIO = "disk-full"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def append(segment: Any, buffers: Any, size: int, placed: Any, interval: int) -> None:
            try:
                original(segment, buffers, size, placed, interval)
            except OSError:
                mark.hit()

        return append

    replace("urteil.broker.log.segment:LogSegment.append", make)
