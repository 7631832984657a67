"""What was committed with a position is stored in a format that has no room for all of it."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a committed position loses the leader epoch that it was committed with"
MODELS = "OffsetCommitValue in the version before KIP-320's leader epoch"
SCENARIO = "committed-registers"
GUARANTEE = "commit_register"


def apply(mark: Mark) -> None:
    """Positions are stored in version 2."""

    def make(original: Function) -> Function:
        def encode(version: int, message: Any) -> bytes:
            if getattr(message, "leader_epoch", -1) >= 0:
                mark.hit()
                version = 2
            return bytes(original(version, message))

        return encode

    replace("urteil.broker.groups.records:encode", make)
