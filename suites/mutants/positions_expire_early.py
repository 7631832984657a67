"""Uses ten seconds in place of offsets.retention.minutes."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the offsets of an empty group expire after seconds"
MODELS = "offsets.retention.minutes read as milliseconds"
SCENARIO = "positions-expire"
GUARANTEE = "commit_register"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def expire(administration: Any, retention_ms: int) -> None:
            mark.hit()
            await original(administration, retention_ms // 60_000)

        return expire

    replace("urteil.broker.groups.maintenance:GroupMaintenance.expire", make)
