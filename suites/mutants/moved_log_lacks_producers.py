"""Starts the copy of a log without producer state."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a replica that moved to another log directory forgets its producers' sequences"
MODELS = "KIP-113: a copied log without the producer state"
SCENARIO = "move-directories"
GUARANTEE = "sequence_gap"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def promote(logs: Any, topic: str, partition: int) -> Any:
            log = original(logs, topic, partition)
            if log.producers.entries:
                mark.hit()
                log.producers.entries.clear()
            return log

        return promote

    replace("urteil.broker.log.log_manager:LogManager.promote_future", make)
