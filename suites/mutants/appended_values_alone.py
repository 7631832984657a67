"""A value that is added to a list takes the list's place."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "IncrementalAlterConfigs sets what it should add"
MODELS = "APPEND served as SET (KIP-339)"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"

APPEND = 2
"""`AlterConfigOp.OpType`."""


def apply(mark: Mark) -> None:
    """What stood there is forgotten."""

    def make(original: Function) -> Function:
        def changed(settings: Any, change: Any, key: Any) -> str:
            if change.operation != APPEND:
                return str(original(settings, change, key))
            mark.hit()
            return str(change.value)

        return changed

    replace("urteil.broker.server.config_changes:_list_changed", make)
