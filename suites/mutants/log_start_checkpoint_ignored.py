"""Loads an empty log-start-offset-checkpoint."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a restarted broker does not read log-start-offset-checkpoint"
MODELS = "a checkpoint that is read under another name"
SCENARIO = "deleted-once"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def read_offsets(directory: Any, name: str) -> Any:
            result = original(directory, name)
            if name == "log-start-offset-checkpoint" and result:
                mark.hit()
                return {}
            return result

        return read_offsets

    replace("urteil.broker.log.log_directory:LogDirectory.read_offsets", make)
