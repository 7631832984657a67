"""Positions are kept by partition alone: what one group commits, another is told."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "groups of one coordinator share their committed positions"
MODELS = "a cache of positions whose key leaves the group out"
SCENARIO = "committed-registers"
GUARANTEE = "commit_register"


def apply(mark: Mark) -> None:
    """A position is noted for every group that is known."""

    def make(original: Function) -> Function:
        def replay(shard: Any, place: Any, value: bytes | None, log_offset: int) -> None:
            original(shard, place, value, log_offset)
            group, *where = place
            told = shard.offsets[group].get(tuple(where))
            for other, positions in shard.offsets.items():
                if other != group and told is not None:
                    mark.hit()
                    positions[tuple(where)] = told

        return replay

    replace("urteil.broker.groups.shard:Shard._replay_offset", make)
