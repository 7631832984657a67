"""Groups at their coordinator: stored metadata, loading, deletion."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace


@mutant(
    about="a new coordinator loads the offsets of its groups, without members and generations",
    models="group metadata that is lost when the coordinator changes",
    scenario="coordinator-crash",
    guarantee="generation_went_back",
)
def groups_not_loaded(mark: Mark) -> None:
    """Discards group metadata records when a partition is loaded."""

    def make(original: Function) -> Function:
        def finish_loading(shard: Any, new_group: Any, now_ms: float) -> None:
            if shard._stored_groups:
                mark.hit()
            shard._stored_groups.clear()
            original(shard, new_group, now_ms)

        return finish_loading

    replace("urteil.broker.groups.shard:Shard.finish_loading", make)


@mutant(
    about="a new coordinator loads a group without its members' assignments",
    models="loadGroup that omits the assignments of GroupMetadataValue",
    scenario="lost-generations",
    guarantee="generation_went_back",
)
def assignments_not_loaded(mark: Mark) -> None:
    """Clears the members' assignments of each group that is loaded."""

    def make(original: Function) -> Function:
        def restore(group: Any, value: Any, now_ms: float) -> None:
            original(group, value, now_ms)
            for member in group.members.values():
                mark.hit()
                member.assignment = b""

        return restore

    replace("urteil.broker.groups.shard:restore", make)


@mutant(
    about="a group's new generation is answered before its record is replicated",
    models="group metadata appended with acks=1",
    scenario="lost-generations",
    guarantee="generation_went_back",
)
def generation_not_replicated(mark: Mark) -> None:
    """Writes group metadata with acks=1."""

    def make(original: Function) -> Function:
        async def append(groups: Any, *args: Any, **kwargs: Any) -> Any:
            if any(type(key).__name__ == "GroupMetadataKey" for key, _ in args[1]):
                mark.hit()
                kwargs["acks"] = 1
            return await original(groups, *args, **kwargs)

        return append

    replace("urteil.broker.groups.coordinator:GroupCoordinator.append", make)


@mutant(
    about="LeaveGroup of several members removes only the first one",
    models="LeaveGroup 3 served as the versions before",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def only_first_member_leaves(mark: Mark) -> None:
    """Removes the first member of a LeaveGroup request only."""

    def make(original: Function) -> Function:
        def leave(coordinator: Any, group_id: str, members: Any) -> Any:
            if len(members) > 1:
                mark.hit()
            error, errors = original(coordinator, group_id, members[:1])
            return error, errors * len(members)

        return leave

    replace("urteil.broker.groups.coordinator:GroupCoordinator.leave", make)


@mutant(
    about="a new coordinator removes all members of a group as soon as it has loaded it",
    models="session timers that do not restart when a group is loaded",
    scenario="coordinator-crash",
    guarantee="member_expelled",
)
def members_expired_at_takeover(mark: Mark) -> None:
    """Sets the deadlines of loaded members to the past."""

    def make(original: Function) -> Function:
        def member(**stored: Any) -> Any:
            mark.hit()
            stored["deadline_ms"] -= stored["session_timeout_ms"]
            return original(**stored)

        return member

    replace("urteil.broker.groups.snapshot:Member", make)


@mutant(
    about="DeleteGroups of an empty group is acknowledged, and the group remains",
    models="KIP-229: DeleteGroups that forgets the group's offsets",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def groups_not_deleted(mark: Mark) -> None:
    """Finds nothing to delete in an empty group."""

    def make(original: Function) -> Function:
        async def forget(
            administration: Any, *args: Any, ordered: bool = False, **kwargs: Any
        ) -> Any:
            from urteil.broker.wire.errors import ErrorCode

            if not ordered:
                return await original(administration, *args, **kwargs)
            mark.hit()
            return ErrorCode.NONE

        return forget

    replace("urteil.broker.groups.maintenance:GroupMaintenance._delete", make)


@mutant(
    about="a new coordinator loads static members as dynamic ones",
    models="KIP-345: a group.instance.id that is not loaded",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def static_members_not_loaded(mark: Mark) -> None:
    """Clears the instance ids of loaded members."""

    def make(original: Function) -> Function:
        def finish(shard: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(shard, *args, **kwargs)
            for group in shard.groups.values():
                for member in group.members.values():
                    if member.instance_id is not None:
                        mark.hit()
                        member.instance_id = None
                group.static_members.clear()
            return result

        return finish

    replace("urteil.broker.groups.shard:Shard.finish_loading", make)
