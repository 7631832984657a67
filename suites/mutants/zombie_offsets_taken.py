"""A transaction takes a group's positions from whoever is a member, in whatever generation."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "TxnOffsetCommit of an older generation is stored as if it were of this one"
MODELS = "before KIP-447: a consumer that was put out of its group commits what others go on from"
SCENARIO = "paused-copier"
GUARANTEE = "zombie_commit"


def apply(mark: Mark) -> None:
    """The group compares the generation of such a commit with itself."""

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
