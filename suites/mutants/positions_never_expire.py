"""Drops the expiry timestamp of loaded offsets."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new coordinator ignores the expiry of committed offsets"
MODELS = "KIP-211: expire_timestamp lost between log and memory"
SCENARIO = "positions-expire"
GUARANTEE = "commit_register"
NEVER = -1


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def decode_offset(value: Any) -> Any:
            from dataclasses import replace as changed

            result = original(value)
            if not result.expires:
                return result
            mark.hit()
            return changed(result, expire_timestamp=NEVER)

        return decode_offset

    replace("urteil.broker.groups.shard:decode_offset", make)
