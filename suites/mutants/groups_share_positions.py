"""Stores each commit for all groups of the coordinator."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "groups of one coordinator share their committed offsets"
MODELS = "an offset cache whose key omits the group"
SCENARIO = "committed-registers"
GUARANTEE = "commit_register"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def replay(shard: Any, place: Any, value: bytes | None, log_offset: int) -> None:
            original(shard, place, value, log_offset)
            group, *where = place
            result = shard.offsets[group].get(tuple(where))
            for other, positions in shard.offsets.items():
                if other != group and result is not None:
                    mark.hit()
                    positions[tuple(where)] = result

        return replay

    replace("urteil.broker.groups.shard:Shard._replay_offset", make)
