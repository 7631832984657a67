"""The group coordinator: groups of the led partitions of `__consumer_offsets`, from request to log.

A `Group` is a synchronous state machine. The coordinator finds it, passes it the request and the
time, appends what must be stored to the log, and reports the result to the group. A waiting
JoinGroup or SyncGroup is a future that the group resolves.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

from urteil.broker.base.clock import Clock
from urteil.broker.base.remote_time import await_remote
from urteil.broker.base.tasks import Tasks
from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.coordination.shards import APPEND_ERRORS, Shards
from urteil.broker.groups import records
from urteil.broker.groups.group import Group
from urteil.broker.groups.group_state import GroupState
from urteil.broker.groups.member import JoinRequest, JoinResult, SyncResult
from urteil.broker.groups.shard import Shard
from urteil.broker.groups.shard_loading import load_shard
from urteil.broker.groups.snapshot import snapshot
from urteil.broker.log.transaction_verification import Guard
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.replication.replica_manager import ACKS_ALL, ReplicaManager
from urteil.broker.wire.batches import NO_PRODUCER_ID, Compression, build_batch
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.schema import Message

log = logging.getLogger("groups")

OFFSETS_TOPIC = "__consumer_offsets"
T = TypeVar("T")
Stored = tuple[Message, Message | None]
"""A record's key and value."""

OFFSET_ERRORS = APPEND_ERRORS | {
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""The answer to OffsetCommit for an error of the append
(`GroupMetadataManager.maybeConvertOffsetCommitError`)."""
GROUP_ERRORS = APPEND_ERRORS | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The answer to JoinGroup and SyncGroup for an error of the append (`storeGroup`)."""


class GroupCoordinator:
    """Coordinates the groups of every partition of the offsets topic that this broker leads."""

    def __init__(
        self,
        config: BrokerConfig,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self._config = config
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._rng = rng
        self._shards: Shards[Shard] = Shards(
            OFFSETS_TOPIC, metadata, config.offsets_topic_num_partitions
        )
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.tasks = Tasks("groups")
        replicas.on_leadership(self.leadership_changed)

    def stop(self) -> None:
        """Resign from every group and end all timers and tasks."""
        for shard in self._shards:
            self._resign(shard.partition)
        self.tasks.cancel()

    def new_member_id(self, prefix: str) -> str:
        """A member id in Kafka's form: the client id or instance id, then a UUID."""
        return f"{prefix}-{UUID(int=self._rng.getrandbits(128), version=4)}"

    # -- shards ---------------------------------------------------------------------------------

    def partition_for(self, group_id: str) -> int:
        return self._shards.partition_for(group_id)

    def leadership_changed(
        self, topic: str, partition: int, is_leader: bool, leader_epoch: int
    ) -> None:
        """Load a partition's groups when this broker begins to lead it, and drop them when it
        stops. A new leader epoch of the same leader changes nothing."""
        if topic != OFFSETS_TOPIC:
            return
        if not is_leader:
            self._resign(partition)
        elif partition not in self._shards:
            self.tasks.spawn(self._load(self._shards.add(Shard(partition))))

    async def _load(self, shard: Shard) -> None:
        hosted = self._replicas.partition(OFFSETS_TOPIC, shard.partition)
        if hosted is None:
            return
        await load_shard(shard, hosted.log, lambda: self._shards.owns(shard))
        if self._shards.owns(shard):
            shard.finish_loading(self._new_group, self._clock.monotonic_ms())
            for group in shard.groups.values():
                group.enforce_max_size(self._clock.monotonic_ms())
                self._schedule(group)

    def _resign(self, partition: int) -> None:
        shard = self._shards.pop(partition)
        if shard is not None:
            for group in shard.groups.values():
                self._cancel_timer(group.group_id)
                group.resign(ErrorCode.NOT_COORDINATOR)

    def find(self, group_id: str) -> tuple[Shard | None, ErrorCode]:
        """The loaded shard of a group, or the error that a client receives instead."""
        return self._shards.find(group_id)

    def shards(self) -> list[Shard]:
        """All shards of this broker, loaded or not."""
        return list(self._shards)

    def remove(self, shard: Shard, group: Group) -> None:
        """Remove a group without members whose tombstones are in the log."""
        self._cancel_timer(group.group_id)
        group.resign(ErrorCode.UNKNOWN_MEMBER_ID)
        shard.groups.pop(group.group_id, None)
        shard.offsets.pop(group.group_id, None)
        shard.pending.drop_group(group.group_id)

    def _member_group(self, group_id: str) -> tuple[Group | None, ErrorCode]:
        """The group of a member; UNKNOWN_MEMBER_ID if there is no such group."""
        shard, error = self.find(group_id)
        if shard is None:
            return None, error
        group = shard.groups.get(group_id)
        return group, ErrorCode.NONE if group else ErrorCode.UNKNOWN_MEMBER_ID

    def _get_or_create_group(self, shard: Shard, group_id: str) -> Group:
        """The group, created if it does not exist."""
        if group_id not in shard.groups:
            shard.groups[group_id] = self._new_group(group_id)
        return shard.groups[group_id]

    def _new_group(self, group_id: str) -> Group:
        return Group(
            group_id,
            initial_delay_ms=self._config.group_initial_rebalance_delay_ms,
            max_size=self._config.group_max_size,
        )

    # -- requests -------------------------------------------------------------------------------

    async def join(self, group_id: str, request: JoinRequest) -> JoinResult:
        """Handle JoinGroup; returns when the rebalance completes."""
        low = self._config.group_min_session_timeout_ms
        high = self._config.group_max_session_timeout_ms
        shard, error = self.find(group_id)
        if not group_id:
            error = ErrorCode.INVALID_GROUP_ID
        elif error is ErrorCode.NONE and not low <= request.session_timeout_ms <= high:
            error = ErrorCode.INVALID_SESSION_TIMEOUT
        elif shard and request.member_id and group_id not in shard.groups:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if shard is None or error is not ErrorCode.NONE:
            return JoinResult(error=error, member_id=request.member_id)
        group = self._get_or_create_group(shard, group_id)
        future: asyncio.Future[JoinResult] = asyncio.get_running_loop().create_future()
        if group.join(request, self._clock.monotonic_ms(), partial(_resolve, future)):
            assigned = {member.member_id: member.assignment for member in group.members.values()}
            now = self._snapshot(group, assigned)
            self.tasks.spawn(self._store_return(shard, group, now, request))
        self._handle_change(shard, group)
        return await await_remote(future)

    async def _store_return(
        self, shard: Shard, group: Group, now: Stored, request: JoinRequest
    ) -> None:
        """Store the new id of a static member, so that the next coordinator has it."""
        error = await self._store(shard, group, now)
        group.complete_return(request, error, self._clock.monotonic_ms())
        self._handle_change(shard, group)

    async def sync(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol_type: str | None,
        protocol: str | None,
        assignments: Mapping[str, bytes],
    ) -> SyncResult:
        """Handle SyncGroup; returns when the leader's assignment is stored."""
        shard, error = self.find(group_id)
        group = shard.groups.get(group_id) if shard else None
        if not group_id:
            return SyncResult(error=ErrorCode.INVALID_GROUP_ID)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            error = ErrorCode.REBALANCE_IN_PROGRESS  # the member shall rejoin, as in Kafka
        if shard is None or group is None:
            known = error if error is not ErrorCode.NONE else ErrorCode.UNKNOWN_MEMBER_ID
            return SyncResult(error=known)
        future: asyncio.Future[SyncResult] = asyncio.get_running_loop().create_future()
        now_ms = self._clock.monotonic_ms()
        answer = partial(_resolve, future)
        if group.sync(member_id, instance_id, generation, protocol_type, protocol, now_ms, answer):
            now = self._snapshot(group, assignments)
            self.tasks.spawn(
                self._store_assignment(shard, group, now, generation, dict(assignments))
            )
        self._schedule(group)
        return await await_remote(future)

    async def _store_assignment(
        self,
        shard: Shard,
        group: Group,
        now: Stored,
        generation: int,
        assignments: dict[str, bytes],
    ) -> None:
        error = await self._store(shard, group, now)
        now_ms = self._clock.monotonic_ms()
        if error is ErrorCode.NONE:
            group.complete_sync(generation, assignments, now_ms)
        else:
            group.assignment_failed(generation, error, now_ms)
        self._handle_change(shard, group)

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        group, error = self._member_group(group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return ErrorCode.NONE  # no session expires while the group is loading
        if group is not None:
            error = group.heartbeat(member_id, instance_id, generation, self._clock.monotonic_ms())
            self._schedule(group)
        return error

    def leave(
        self, group_id: str, members: Sequence[tuple[str, str | None]]
    ) -> tuple[ErrorCode, list[ErrorCode]]:
        """Remove members (id, instance id): one error for all, or one for each."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID, []
        shard, error = self.find(group_id)
        if shard is None:
            return error, []
        group = shard.groups.get(group_id)
        if group is None:
            return ErrorCode.NONE, [ErrorCode.UNKNOWN_MEMBER_ID] * len(members)
        now_ms = self._clock.monotonic_ms()
        errors = [group.leave(member, instance, now_ms) for member, instance in members]
        self._handle_change(shard, group)
        return ErrorCode.NONE, errors

    async def commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        positions: Mapping[tuple[str, int], records.OffsetCommitValue],
    ) -> ErrorCode:
        """Store offsets, all or none; visible once the offsets topic has committed them."""
        shard, error = self.find(group_id)
        if shard is None:
            return error
        if group_id not in shard.groups and generation >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        group = self._get_or_create_group(shard, group_id)
        error = group.check_commit(member_id, instance_id, generation, self._clock.monotonic_ms())
        if error is not ErrorCode.NONE or not positions:
            return error
        places = [(group_id, *where) for where in positions]
        shard.pending.begin_append(places)
        try:
            return await self.append(shard, _entries(group_id, positions))
        finally:
            shard.pending.end_append(places)

    def register_group(self, group_id: str) -> ErrorCode:
        """Create the group if it does not exist, even if the commit that names it fails."""
        shard, error = self.find(group_id)
        if shard is not None:
            self._get_or_create_group(shard, group_id)
        return error

    async def commit_in_transaction(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        producer: tuple[int, int],
        guard: Guard,
        positions: Mapping[tuple[str, int], records.OffsetCommitValue],
    ) -> ErrorCode:
        """Store offsets as part of the transaction of `producer` (id and epoch): they are visible
        once it commits. `guard`: see `broker.log.transaction_verification`."""
        shard, error = self.find(group_id)
        if shard is None:
            return error
        group = self._get_or_create_group(shard, group_id)
        is_simple = generation < 0 and group.state is GroupState.EMPTY
        if not is_simple and (generation >= 0 or member_id or instance_id is not None):
            error = group.check_member(member_id, instance_id, generation)
        if error is not ErrorCode.NONE or not positions:
            return error
        places = [(group_id, *where) for where in positions]
        shard.pending.begin_append(places, producer[0])
        try:
            return await self.append(shard, _entries(group_id, positions), producer, guard)
        finally:
            shard.pending.end_append(places, producer[0])

    def transaction_ended(
        self, partition: int, producer_id: int, marker_offset: int, *, commit: bool
    ) -> None:
        """Apply a transaction marker that was written to a partition of the offsets topic."""
        shard = self._shards.get(partition)
        if shard is not None:
            shard.marker_written(producer_id, marker_offset, commit=commit)

    # -- storing --------------------------------------------------------------------------------

    def _snapshot(self, group: Group, assignments: Mapping[str, bytes]) -> Stored:
        """The record of the group's present state."""
        value = snapshot(group, assignments, self._clock.now_ms())
        return records.GroupMetadataKey(group=group.group_id), value

    async def _store(self, shard: Shard, group: Group, now: Stored) -> ErrorCode:
        """Append the group's record, unless the group was deleted: its tombstone is in the log.

        An exception becomes an error as well: requests of members wait for this.
        """
        if group.state is GroupState.DEAD:
            return ErrorCode.NONE
        try:
            return await self.append(shard, [now], errors=GROUP_ERRORS)
        except Exception:
            log.exception("group %s was not stored", group.group_id)
            return ErrorCode.UNKNOWN_SERVER_ERROR

    def _is_too_large(self, shard: Shard, entries: Sequence[Stored]) -> bool:
        """Whether the log would reject the records by their size alone."""
        hosted = self._replicas.partition(OFFSETS_TOPIC, shard.partition)
        if hosted is None or hosted.log.config.codec_for(Compression.NONE) != Compression.NONE:
            return False
        size = sum(records.content_bytes(value) for _, value in entries)
        return size > hosted.log.config.max_message_bytes

    async def append(
        self,
        shard: Shard,
        entries: Sequence[Stored],
        producer: tuple[int, int] | None = None,
        guard: Guard | None = None,
        *,
        acks: int = ACKS_ALL,
        errors: Mapping[ErrorCode, ErrorCode] = OFFSET_ERRORS,
    ) -> ErrorCode:
        """Append, and replay the offsets once they are committed, or at once with acks=0.

        A value of None is a tombstone. `errors` maps errors of the log to errors of the response.
        """
        now_ms = self._clock.now_ms()
        if self._is_too_large(shard, entries):
            return errors.get(ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.MESSAGE_TOO_LARGE)
        encoded = [(*_encode(key, value), (), now_ms) for key, value in entries]
        producer_id, epoch = producer or (NO_PRODUCER_ID, -1)
        batch = build_batch(
            encoded,
            producer_id=producer_id,
            producer_epoch=epoch,
            transactional=producer is not None,
        )
        where = (OFFSETS_TOPIC, shard.partition)
        answers = await self._replicas.append(
            self._config.offsets_commit_timeout_ms,
            acks,
            {where: memoryview(batch)},
            internal=True,
            guards={where: guard} if guard else None,
        )
        result = answers[where]
        if result.error is not ErrorCode.NONE:
            return errors.get(result.error, result.error)
        if not self._shards.owns(shard):
            return ErrorCode.NOT_COORDINATOR
        for number, (key, value, _, _) in enumerate(encoded):
            offset = result.base_offset + number
            shard.replay(key, value, offset, None if producer is None else producer_id)
        return ErrorCode.NONE

    # -- time -----------------------------------------------------------------------------------

    def _handle_change(self, shard: Shard, group: Group) -> None:
        """After a change: store an emptied generation, and set the next timer."""
        if group.pop_emptied():
            group.empty_since_ms = self._clock.now_ms()
            self.tasks.spawn(self._store_empty(shard, group, self._snapshot(group, {})))
        self._schedule(group)

    async def _store_empty(self, shard: Shard, group: Group, now: Stored) -> None:
        error = await self._store(shard, group, now)
        if error is not ErrorCode.NONE:
            log.warning(
                "group %s: the empty generation was not stored: %s", group.group_id, error.name
            )

    def _schedule(self, group: Group) -> None:
        if group.state is GroupState.DEAD:
            return  # a timer of this id belongs to a later term
        self._cancel_timer(group.group_id)
        due_ms = group.next_deadline_ms()
        if due_ms is not None:
            loop = asyncio.get_running_loop()
            self._timers[group.group_id] = loop.call_at(due_ms / 1000.0, self._tick, group)

    def _tick(self, group: Group) -> None:
        shard = self._shards.get(self.partition_for(group.group_id))
        group.tick(self._clock.monotonic_ms())
        if shard is not None:
            self._handle_change(shard, group)

    def _cancel_timer(self, group_id: str) -> None:
        timer = self._timers.pop(group_id, None)
        if timer is not None:
            timer.cancel()


def _entries(
    group_id: str, positions: Mapping[tuple[str, int], records.OffsetCommitValue]
) -> list[Stored]:
    return [
        (records.OffsetCommitKey(group=group_id, topic=topic, partition=partition), value)
        for (topic, partition), value in positions.items()
    ]


def _encode(key: Message, value: Message | None) -> tuple[bytes, bytes | None]:
    is_offset = isinstance(key, records.OffsetCommitKey)
    key_version = records.OFFSET_KEY_VERSION if is_offset else records.GROUP_KEY_VERSION
    value_version = records.OFFSET_VALUE_VERSION if is_offset else records.GROUP_VALUE_VERSION
    if isinstance(value, records.OffsetCommitValue) and value.expires:
        value_version = records.OFFSET_VALUE_VERSION_THAT_EXPIRES
    return (
        records.encode(key_version, key),
        None if value is None else records.encode(value_version, value),
    )


def _resolve(future: asyncio.Future[T], result: T) -> None:
    if not future.done():  # the client may have disconnected
        future.set_result(result)
