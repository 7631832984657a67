"""Clears the open transactions of a log when its broker becomes leader."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new leader forgets which transactions are open in its log"
MODELS = "a last stable offset that is computed only from the leader's own appends"
SCENARIO = "transactions-restart"
GUARANTEE = "aborted_read"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def begin(partition: Any, state: Any, now_ms: float, *, is_new_leader: bool) -> None:
            original(partition, state, now_ms, is_new_leader=is_new_leader)
            ongoing = partition.log.producers._ongoing
            if is_new_leader and ongoing:
                mark.hit()
                ongoing.clear()

        return begin

    replace("urteil.broker.replication.partition:Partition._begin_epoch", make)
