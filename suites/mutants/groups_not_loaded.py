"""A new coordinator knows the positions of its groups, and of their members nothing."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a coordinator that takes over forgets the groups' members and generations"
MODELS = "group metadata lost at a move of the coordinator"
SCENARIO = "coordinator-crash"
GUARANTEE = "generation_went_back"


def apply(mark: Mark) -> None:
    """What the log tells of groups is not taken over."""

    def make(original: Function) -> Function:
        def finish_loading(shard: Any, new_group: Any, now_ms: float) -> None:
            if shard._stored_groups:
                mark.hit()
            shard._stored_groups.clear()
            original(shard, new_group, now_ms)

        return finish_loading

    replace("urteil.broker.groups.shard:Shard.finish_loading", make)
