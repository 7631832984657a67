"""Compares the generation of a TxnOffsetCommit with itself."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "TxnOffsetCommit of an older generation is accepted"
MODELS = "before KIP-447: offsets of a removed member, from which others continue"
SCENARIO = "paused-copier"
GUARANTEE = "zombie_commit"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def commit_in_transaction(
            groups: Any,
            group_id: str,
            member_id: str,
            instance_id: str | None,
            generation: int,
            *rest: Any,
        ) -> Any:
            shard, _ = groups.find(group_id)
            group = shard.groups.get(group_id) if shard else None
            if group is not None and 0 <= generation < group.generation:
                mark.hit()
                generation = group.generation
            return await original(groups, group_id, member_id, instance_id, generation, *rest)

        return commit_in_transaction

    replace("urteil.broker.groups.coordinator:GroupCoordinator.commit_in_transaction", make)
