"""Committed offsets of groups: commits, loading, deletion, expiry."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.early_acknowledgement import Hasty
from urteil.suites.mutants.patching import Function, Mark, replace

LEFT_OUT = 50
NEVER = -1
BEFORE = 30


@mutant(
    about="a commit is answered before its record is replicated",
    models="offsets.commit.required.acks=1",
    scenario="cut-coordinator",
    guarantee="commit_went_back",
)
def offsets_acked_before_replication(mark: Mark) -> None:
    """Appends commits with acks=1."""

    def make(original: Function) -> Function:
        async def append(coordinator: Any, *args: Any, **kwargs: Any) -> Any:
            hasty = copy.copy(coordinator)
            hasty._replicas = Hasty(coordinator._replicas, mark)
            return await original(hasty, *args, **kwargs)

        return append

    replace("urteil.broker.groups.coordinator:GroupCoordinator.append", make)


@mutant(
    about="a new coordinator does not load the last commits of its groups",
    models="offset commits lost when a coordinator fails over",
    scenario="committed-registers",
    guarantee="commit_went_back",
)
def last_commits_not_loaded(mark: Mark) -> None:
    """Skips the records near the end of the log when a partition is loaded."""

    def make(original: Function) -> Function:
        async def walk(partition_log: Any) -> AsyncIterator[Any]:
            end = partition_log.log_end_offset - LEFT_OUT
            async for header, batch in original(partition_log):
                if header.base_offset < end:
                    yield header, batch
                else:
                    mark.hit()

        return walk

    replace("urteil.broker.groups.shard_loading:iter_log_batches", make)


@mutant(
    about="a committed offset loses its leader epoch",
    models="OffsetCommitValue in the version before KIP-320's leader epoch",
    scenario="committed-registers",
    guarantee="commit_register",
    mix="retention",
)
def commit_leader_epoch_lost(mark: Mark) -> None:
    """Stores commits in version 2 of OffsetCommitValue."""

    def make(original: Function) -> Function:
        def encode(version: int, message: Any) -> bytes:
            if getattr(message, "leader_epoch", -1) >= 0:
                mark.hit()
                version = 2
            return bytes(original(version, message))

        return encode

    replace("urteil.broker.groups.records:encode", make)


@mutant(
    about="groups of one coordinator share their committed offsets",
    models="an offset cache whose key omits the group",
    scenario="committed-registers",
    guarantee="commit_register",
    mix="retention",
)
def groups_share_positions(mark: Mark) -> None:
    """Stores each commit for all groups of the coordinator."""

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


@mutant(
    about="a commit is acknowledged although its record was not replicated",
    models="an OffsetCommit answer that ignores the result of the append",
    scenario="committed-registers",
    guarantee="commit_went_back",
)
def failed_commit_is_success(mark: Mark) -> None:
    """Ignores errors of the append to __consumer_offsets."""

    def make(original: Function) -> Function:
        async def commit(coordinator: Any, *args: Any, **kwargs: Any) -> Any:
            from urteil.broker.wire.errors import ErrorCode

            error = await original(coordinator, *args, **kwargs)
            if error in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                mark.hit()
                return ErrorCode.NONE
            return error

        return commit

    replace("urteil.broker.groups.coordinator:GroupCoordinator.commit", make)


@mutant(
    about="a new coordinator loads offsets of aborted transactions as committed",
    models="KIP-447: the offsets topic loaded without its markers",
    scenario="exactly-once",
    guarantee="offsets_not_atomic",
)
def pending_offsets_loaded(mark: Mark) -> None:
    """Stores offsets of open transactions as committed when a partition is loaded."""

    def make(original: Function) -> Function:
        def replay(shard: Any, header: Any, batch: Any) -> Any:
            if header.is_transactional and not header.is_control:
                mark.hit()
            attributes = header.attributes if header.is_control else header.attributes & ~0x10
            return original(shard, header._replace(attributes=attributes), batch)

        return replay

    replace("urteil.broker.groups.shard_loading:_replay", make)


@mutant(
    about="OffsetDelete is acknowledged, and the offsets remain",
    models="an answer that does not wait for its deletion",
    scenario="committed-registers",
    guarantee="commit_register",
    mix="retention",
)
def positions_not_deleted(mark: Mark) -> None:
    """Keeps the offsets that OffsetDelete names."""
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        async def forget(
            administration: Any, shard: Any, group: Any, places: Any, *, whole: bool, **kwargs: Any
        ) -> Any:
            if not whole:
                mark.hit()
                return ErrorCode.NONE
            return await original(administration, shard, group, places, whole=whole, **kwargs)

        return forget

    replace("urteil.broker.groups.maintenance:GroupMaintenance._delete", make)


@mutant(
    about="deleted offsets of a group return when its coordinator changes",
    models="a deletion in memory that the log undoes",
    scenario="committed-registers",
    guarantee="commit_register",
    mix="retention",
)
def offset_deletion_not_logged(mark: Mark) -> None:
    """Removes deleted offsets from memory and writes no tombstones."""
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        async def append(coordinator: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("acks") != 0:
                return await original(coordinator, *args, **kwargs)
            mark.hit()
            shard, entries = args
            for key, _ in entries:
                if hasattr(key, "topic"):
                    shard.offsets[key.group].pop((key.topic, key.partition), None)
            return ErrorCode.NONE

        return append

    replace("urteil.broker.groups.coordinator:GroupCoordinator.append", make)


@mutant(
    about="TxnOffsetCommit of an older generation is accepted",
    models="before KIP-447: offsets of a removed member, from which others continue",
    scenario="paused-copier",
    guarantee="zombie_commit",
)
def zombie_txn_offsets_accepted(mark: Mark) -> None:
    """Compares the generation of a TxnOffsetCommit with itself."""

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


@mutant(
    about="a new coordinator ignores the expiry of committed offsets",
    models="KIP-211: expire_timestamp lost between log and memory",
    scenario="positions-expire",
    guarantee="commit_register",
    mix="retention",
)
def positions_never_expire(mark: Mark) -> None:
    """Drops the expiry timestamp of loaded offsets."""

    def make(original: Function) -> Function:
        def decode_offset(value: Any) -> Any:
            from dataclasses import replace as changed

            result = original(value)
            if not result.expires:
                return result
            mark.hit()
            return changed(result, expire_timestamp=NEVER)

        return decode_offset

    replace("urteil.broker.groups.shard:decode_offset", make)


@mutant(
    about="the offsets of an empty group expire after seconds",
    models="offsets.retention.minutes read as milliseconds",
    scenario="positions-expire",
    guarantee="commit_register",
    mix="retention",
)
def positions_expire_early(mark: Mark) -> None:
    """Uses ten seconds in place of offsets.retention.minutes."""

    def make(original: Function) -> Function:
        async def expire(administration: Any, retention_ms: int) -> None:
            mark.hit()
            await original(administration, retention_ms // 60_000)

        return expire

    replace("urteil.broker.groups.maintenance:GroupMaintenance.expire", make)


@mutant(
    about="TxnOffsetCommit stores all offsets but the last",
    models="an offset that a transaction loses",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def last_txn_offset_dropped(mark: Mark) -> None:
    """Drops the last offset of a TxnOffsetCommit request that has two or more."""

    def make(original: Function) -> Function:
        async def commit(coordinator: Any, *args: Any) -> Any:
            *others, positions = args
            if len(positions) > 1:
                mark.hit()
                positions = dict(list(positions.items())[:-1])
            return await original(coordinator, *others, positions)

        return commit

    replace("urteil.broker.groups.coordinator:GroupCoordinator.commit_in_transaction", make)


@mutant(
    about="committed offsets of topics that a group consumes expire after "
    "offsets.retention.minutes",
    models="KAFKA-4682 (KIP-211)",
    scenario="positions-expire",
    guarantee="commit_went_back",
    unsimulated="offsets of members do not expire",
)
def active_positions_expire(mark: Mark) -> None:
    """Expires offsets of subscribed topics like any other."""

    def make(original: Function) -> Function:
        def expire(
            administration: Any, shard: Any, group: Any, now_ms: int, retention_ms: int
        ) -> Any:
            expired = original(administration, shard, group, now_ms, retention_ms)
            if group.state.name == "STABLE":
                known = shard.offsets.get(group.group_id, {})
                more = [
                    place
                    for place, committed in known.items()
                    if place not in expired
                    and committed.value.expires
                    and committed.value.expire_timestamp <= now_ms
                ]
                if more:
                    mark.hit()
                expired = [*expired, *more]
            return expired

        return expire

    replace("urteil.broker.groups.maintenance:GroupMaintenance._expired_places", make)


@mutant(
    about="after thirty commits a coordinator answers that its group is being loaded",
    models="groups that stay in loading for ever",
    scenario="group-calm",
    guarantee="commits_stand_still",
)
def commits_always_loading(mark: Mark) -> None:
    """Answers each OffsetCommit after the thirtieth with COORDINATOR_LOAD_IN_PROGRESS."""
    from urteil.broker.wire.errors import ErrorCode

    requests: Counter[str] = Counter()

    def make(original: Function) -> Function:
        async def commit(coordinator: Any, group_id: str = "", *args: Any, **kwargs: Any) -> Any:
            requests[group_id] += 1
            if requests[group_id] > BEFORE:
                mark.hit()
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return await original(coordinator, group_id, *args, **kwargs)

        return commit

    replace("urteil.broker.groups.coordinator:GroupCoordinator.commit", make)


@mutant(
    about="committed offsets of a deleted topic remain",
    models="OffsetMetadata of deleted partitions that no coordinator removes",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def positions_outlive_topics(mark: Mark) -> None:
    """Ignores the deletion of topics."""

    def make(original: Function) -> Function:
        async def ignore_deletion(groups: Any, partitions: Any) -> None:
            if partitions:
                mark.hit()

        return ignore_deletion

    replace("urteil.broker.groups.maintenance:GroupMaintenance.topics_deleted", make)
