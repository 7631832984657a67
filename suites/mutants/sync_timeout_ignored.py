"""Does nothing when the time for SyncGroup ends."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a member that sends no SyncGroup keeps its place and its assignment"
MODELS = "KAFKA-12890"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(_: Function) -> Function:
        def expire(group: Any, now_ms: float) -> None:
            mark.hit()
            group._sync_deadline_ms = None

        return expire

    replace("urteil.broker.groups.group:Group._expire_syncs", make)
