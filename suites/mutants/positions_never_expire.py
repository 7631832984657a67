"""Positions stay longer than they were to be kept."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a coordinator that takes over keeps positions for ever that were to be kept for a while"
MODELS = "expire_timestamp lost between the log and memory (KIP-211)"
SCENARIO = "positions-expire"
GUARANTEE = "commit_register"
NEVER = -1


def apply(mark: Mark) -> None:
    """What is read from the log is kept by the broker's own settings."""

    def make(original: Function) -> Function:
        def decode_offset(value: Any) -> Any:
            from dataclasses import replace as changed

            found = original(value)
            if not found.expires:
                return found
            mark.hit()
            return changed(found, expire_timestamp=NEVER)

        return decode_offset

    replace("urteil.broker.groups.shard:decode_offset", make)
