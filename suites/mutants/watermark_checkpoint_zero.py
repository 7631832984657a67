"""Writes 0 for every log into replication-offset-checkpoint."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "high watermarks are lost in a restart"
MODELS = "a checkpoint written before there is anything to write"
SCENARIO = "indexes"
GUARANTEE = "replica_divergence"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def checkpoint(logs: Any, watermarks: Any) -> Any:
            if any(watermarks.values()):
                mark.hit()
            return original(logs, dict.fromkeys(watermarks, 0))

        return checkpoint

    replace("urteil.broker.log.log_manager:LogManager.checkpoint_high_watermarks", make)
