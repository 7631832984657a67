"""Where logs begin is forgotten by a restart."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "log-start-offset-checkpoint is not read at the start"
MODELS = "a checkpoint that is read under another name"
SCENARIO = "deleted-once"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    """The checkpoint is empty."""

    def make(original: Function) -> Function:
        def read_offsets(directory: Any, name: str) -> Any:
            found = original(directory, name)
            if name == "log-start-offset-checkpoint" and found:
                mark.hit()
                return {}
            return found

        return read_offsets

    replace("urteil.broker.log.log_directory:LogDirectory.read_offsets", make)
