"""A replica in another log directory knows nothing of its producers."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a replica that moved to another log directory has forgotten its producers' sequences"
MODELS = "a copy of a log that takes its place without the producers' state (KIP-113)"
SCENARIO = "move-directories"
GUARANTEE = "sequence_gap"


def apply(mark: Mark) -> None:
    """The copy that takes the log's place starts with no producers."""

    def make(original: Function) -> Function:
        def promote(logs: Any, topic: str, partition: int) -> Any:
            log = original(logs, topic, partition)
            if log.producers.entries:
                mark.hit()
                log.producers.entries.clear()
            return log

        return promote

    replace("urteil.broker.log.log_manager:LogManager.promote_future", make)
