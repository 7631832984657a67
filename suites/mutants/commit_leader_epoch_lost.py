"""Stores commits in version 2 of OffsetCommitValue."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a committed offset loses its leader epoch"
MODELS = "OffsetCommitValue in the version before KIP-320's leader epoch"
SCENARIO = "committed-registers"
GUARANTEE = "commit_register"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def encode(version: int, message: Any) -> bytes:
            if getattr(message, "leader_epoch", -1) >= 0:
                mark.hit()
                version = 2
            return bytes(original(version, message))

        return encode

    replace("urteil.broker.groups.records:encode", make)
