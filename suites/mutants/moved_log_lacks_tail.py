"""Counts a copy as complete as soon as it agrees with a part of its log."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Mark, replace

ABOUT = "a replica that moves to another log directory loses its newest records"
MODELS = "KIP-113: a swap that does not check whether the copy is complete"
SCENARIO = "move-directories"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    def make(original: Any) -> Any:
        def is_caught_up(copy: Any) -> bool:
            if original.fget(copy):
                return True
            log, future = copy.partition.log, copy.partition.future
            if future is None or copy._seen != log.generation or not future.log_end_offset:
                return False
            mark.hit()
            return True

        return property(is_caught_up)

    replace("urteil.broker.replication.future_replica:FutureReplica.is_caught_up", make)
