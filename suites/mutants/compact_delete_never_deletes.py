"""Skips logs with a compact policy in the retention task."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "retention skips topics with cleanup.policy=compact,delete"
MODELS = "cleanup.policy=compact,delete treated as compact"
SCENARIO = "retention"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def apply_retention(cleaner: Any, now_ms: int) -> None:
            if any(log.config.deletes for log in cleaner._free()):
                mark.hit()

        return apply_retention

    replace("urteil.broker.log.cleaner.cleaner:Cleaner._apply_retention", make)
