"""Who joined and never asks for its part stays a member as long as it is heard of."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a member that does not ask for its assignment keeps its place, and what it was given"
MODELS = "KAFKA-12890"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """The time for SyncGroup is over, and nothing comes of it."""

    def make(_: Function) -> Function:
        def expire(group: Any, now_ms: float) -> None:
            mark.hit()
            group._sync_deadline_ms = None

        return expire

    replace("urteil.broker.groups.group:Group._expire_syncs", make)
