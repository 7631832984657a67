"""A coordinator that takes over does not know which positions are part of transactions."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a group's coordinator that takes over has positions of aborted transactions as committed"
MODELS = "the offsets topic loaded without its markers (KIP-447)"
SCENARIO = "exactly-once"
GUARANTEE = "offsets_not_atomic"


def apply(mark: Mark) -> None:
    """Every position that is read from the log counts at once."""

    def make(original: Function) -> Function:
        def replay(shard: Any, header: Any, batch: Any) -> Any:
            if header.is_transactional and not header.is_control:
                mark.hit()
            attributes = header.attributes if header.is_control else header.attributes & ~0x10
            return original(shard, header._replace(attributes=attributes), batch)

        return replay

    replace("urteil.broker.groups.loading:_replay", make)
