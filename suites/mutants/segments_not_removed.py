"""Removes nothing from the list of due files."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "files of deleted segments are renamed and never removed"
MODELS = "a scheduled removal that is forgotten"
SCENARIO = "retention"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def remove_deleted(log: Any, now_ms: int) -> None:
            if log._pending_removals:
                mark.hit()

        return remove_deleted

    replace("urteil.broker.log.partition_log:PartitionLog.remove_deleted", make)
