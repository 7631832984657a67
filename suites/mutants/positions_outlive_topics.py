"""Ignores the deletion of topics."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "committed offsets of a deleted topic remain"
MODELS = "OffsetMetadata of deleted partitions that no coordinator removes"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def deleted(groups: Any, partitions: Any) -> None:
            if partitions:
                mark.hit()

        return deleted

    replace("urteil.broker.groups.maintenance:GroupMaintenance.topics_deleted", make)
