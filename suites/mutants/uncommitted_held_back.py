"""Every reader waits for the end of transactions."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "readers of uncommitted records get none beyond the first open transaction either"
MODELS = "isolation.level=read_uncommitted served as read_committed (KIP-98)"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Nobody but followers reads beyond the last stable offset."""

    def make(original: Function) -> Function:
        def bound(partition: Any, terms: Any) -> int:
            right: int = original(partition, terms)
            if terms.is_follower or partition.log.last_stable_offset >= right:
                return right
            mark.hit()
            return int(partition.log.last_stable_offset)

        return bound

    replace("urteil.broker.replication.partition_read:upper_bound", make)
