"""A restarted broker knows nothing of the producers that wrote to its logs."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a restarted broker has forgotten the sequences of idempotent producers"
MODELS = "producer snapshot not loaded at recovery"
SCENARIO = "restart-storm"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    """A log is opened without what its batches and snapshots tell of producers."""

    def make(original: Function) -> Function:
        def run(recovery: Any) -> None:
            original(recovery)
            producers = recovery.loaded.producers
            if producers.entries:
                mark.hit()
                producers.reset(recovery.loaded.log_end_offset)

        return run

    replace("urteil.broker.log.recovery:_Recovery.run", make)
