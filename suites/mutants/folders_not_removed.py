"""What was deleted stays on the disk."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "folders of deleted logs are renamed, and never removed"
MODELS = "a removal that is put off and forgotten"
SCENARIO = "recreate-topic"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    """What is due is forgotten."""

    def make(original: Function) -> Function:
        def remove_due(duties: Any, now_ms: int) -> None:
            if any(due_ms <= now_ms for due_ms, _ in duties._doomed):
                mark.hit()

        return remove_due

    replace("urteil.broker.log.maintenance:Maintenance._remove_due", make)
