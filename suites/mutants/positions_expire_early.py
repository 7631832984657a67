"""Positions are gone long before their time."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "groups without members have their positions for some seconds, not minutes"
MODELS = "offsets.retention.minutes taken for milliseconds"
SCENARIO = "positions-expire"
GUARANTEE = "commit_register"


def apply(mark: Mark) -> None:
    """A week is ten seconds."""

    def make(original: Function) -> Function:
        async def expire(administration: Any, retention_ms: int) -> None:
            mark.hit()
            await original(administration, retention_ms // 60_000)

        return expire

    replace("urteil.broker.groups.administration:GroupAdministration.expire", make)
