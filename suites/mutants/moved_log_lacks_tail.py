"""A log's copy takes its place before it has all of it."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Mark, replace

ABOUT = "a replica that moves to another log directory lies there without what came last"
MODELS = "a swap (KIP-113) that does not look whether the copy has caught up"
SCENARIO = "move-directories"
GUARANTEE = "lost_write"


def apply(mark: Mark) -> None:
    """A copy that agrees with its log and has something of it counts as caught up."""

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
