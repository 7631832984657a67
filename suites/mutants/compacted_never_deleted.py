"""Logs that are compacted are not looked at for what is too old."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "retention passes over topics that are compacted, too"
MODELS = "cleanup.policy=compact,delete taken for compact"
SCENARIO = "retention"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    """The cleaner cleans, and leaves the rest to somebody else."""

    def make(original: Function) -> Function:
        def apply_retention(cleaner: Any, now_ms: int) -> None:
            if any(log.config.deletes for log in cleaner._free()):
                mark.hit()

        return apply_retention

    replace("urteil.broker.log.cleaner.cleaner:Cleaner._apply_retention", make)
