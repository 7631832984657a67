"""Drops the existing list values before an APPEND."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "IncrementalAlterConfigs replaces a list setting where it should append to it"
MODELS = "KIP-339: APPEND served as SET"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"

APPEND = 2
"""`AlterConfigOp.OpType`."""


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def changed(settings: Any, change: Any, key: Any) -> str:
            if change.operation != APPEND:
                return str(original(settings, change, key))
            mark.hit()
            return str(change.value)

        return changed

    replace("urteil.broker.config.incremental_changes:_list_changed", make)
