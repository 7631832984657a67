"""Opens a log without the producer state of its batches and snapshots."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a restarted broker forgets the sequences of idempotent producers"
MODELS = "a producer snapshot that recovery does not load"
SCENARIO = "restart-storm"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def run(recovery: Any) -> None:
            original(recovery)
            producers = recovery.loaded.producers
            if producers.entries:
                mark.hit()
                producers.reset(recovery.loaded.log_end_offset)

        return run

    replace("urteil.broker.log.recovery:_Recovery.run", make)
