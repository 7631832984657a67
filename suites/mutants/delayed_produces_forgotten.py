"""Reports, from the hundredth append on, that replicas are missing."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "acks=all to one partition is never answered after the hundredth append"
MODELS = "delayed operations that no purgatory watches"
SCENARIO = "group-calm"
GUARANTEE = "no_progress"
BEFORE = 100


def apply(mark: Mark) -> None:
    asked = 0

    def make(original: Function) -> Function:
        def acknowledged(partition: Any, required_offset: int) -> Any:
            nonlocal asked
            is_one = partition.partition == 1 and not partition.topic.startswith("__")
            asked += is_one
            if is_one and asked > BEFORE:
                mark.hit()
                return None
            return original(partition, required_offset)

        return acknowledged

    replace("urteil.broker.replication.partition:Partition.acknowledged", make)
