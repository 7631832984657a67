"""Bounds all consumers by the last stable offset."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "read_uncommitted consumers get no records above the first open transaction"
MODELS = "KIP-98: isolation.level=read_uncommitted served as read_committed"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def bound(partition: Any, terms: Any) -> int:
            right: int = original(partition, terms)
            if terms.is_follower or partition.log.last_stable_offset >= right:
                return right
            mark.hit()
            return int(partition.log.last_stable_offset)

        return bound

    replace("urteil.broker.replication.partition_read:upper_bound", make)
