"""Truncates the last batches of an unclean log before recovery."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "recovery of an unclean log drops its last batches, whose offsets are then used again"
MODELS = "recovery that stops before the last valid batch"
SCENARIO = "restart-storm"
GUARANTEE = "inconsistent_offset"

DROPPED_BATCHES = 20


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def run(recovery: Any) -> None:
            if not recovery.checkpointed.clean and len(recovery.loaded.segments):
                cut_tail(recovery.loaded.segments.active)
            original(recovery)

        return run

    def cut_tail(segment: Any) -> None:
        from urteil.broker.log.batch_scan import read_batches

        starts = [batch.position for batch in read_batches(segment.file, 0, segment.size)]
        if len(starts) > DROPPED_BATCHES:
            mark.hit()
            segment.truncate_file(starts[-DROPPED_BATCHES])

    replace("urteil.broker.log.recovery:_Recovery.run", make)
