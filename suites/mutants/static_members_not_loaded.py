"""Clears the instance ids of loaded members."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new coordinator loads static members as dynamic ones"
MODELS = "KIP-345: a group.instance.id that is not loaded"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def finish(shard: Any, *given: Any, **more: Any) -> Any:
            result = original(shard, *given, **more)
            for group in shard.groups.values():
                for member in group.members.values():
                    if member.instance_id is not None:
                        mark.hit()
                        member.instance_id = None
                group.static_members.clear()
            return result

        return finish

    replace("urteil.broker.groups.shard:Shard.finish_loading", make)
