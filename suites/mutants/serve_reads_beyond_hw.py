"""Gives consumers the limit of a follower."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a leader serves consumers records that its followers do not have yet"
MODELS = "reads bounded by the log end instead of the high watermark"
SCENARIO = "cut-crash"
GUARANTEE = "vanished_read"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def upper_bound(partition: Any, terms: Any) -> int:
            allowed, end = int(original(partition, terms)), int(partition.log.log_end_offset)
            if allowed < end:
                mark.hit()
            return end

        return upper_bound

    for module in ("partition_read", "replica_manager"):
        replace(f"urteil.broker.replication.{module}:upper_bound", make)
