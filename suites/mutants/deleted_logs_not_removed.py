"""Removes nothing from the list of due deletions."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "directories of deleted logs are renamed and never removed"
MODELS = "a delayed removal that is forgotten"
SCENARIO = "recreate-topic"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def remove_due(duties: Any, now_ms: int) -> None:
            if any(due_ms <= now_ms for due_ms, _ in duties._removals):
                mark.hit()

        return remove_due

    replace("urteil.broker.log.maintenance:Maintenance._remove_due", make)
