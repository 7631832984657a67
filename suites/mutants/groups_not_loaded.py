"""Discards group metadata records when a partition is loaded."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new coordinator loads the offsets of its groups, without members and generations"
MODELS = "group metadata that is lost when the coordinator changes"
SCENARIO = "coordinator-crash"
GUARANTEE = "generation_went_back"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def finish_loading(shard: Any, new_group: Any, now_ms: float) -> None:
            if shard._stored_groups:
                mark.hit()
            shard._stored_groups.clear()
            original(shard, new_group, now_ms)

        return finish_loading

    replace("urteil.broker.groups.shard:Shard.finish_loading", make)
