"""Who coordinates next knows a static member for one like any other."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a group that is read from the log has no static members"
MODELS = "group.instance.id (KIP-345) that is not read again"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Members stay, their instances are forgotten."""

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
