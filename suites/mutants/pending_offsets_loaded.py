"""Stores offsets of open transactions as committed when a partition is loaded."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new coordinator loads offsets of aborted transactions as committed"
MODELS = "KIP-447: the offsets topic loaded without its markers"
SCENARIO = "exactly-once"
GUARANTEE = "offsets_not_atomic"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def replay(shard: Any, header: Any, batch: Any) -> Any:
            if header.is_transactional and not header.is_control:
                mark.hit()
            attributes = header.attributes if header.is_control else header.attributes & ~0x10
            return original(shard, header._replace(attributes=attributes), batch)

        return replay

    replace("urteil.broker.groups.shard_loading:_replay", make)
