"""Maintenance of groups: listing, description, deletion, and expiration of offsets.

Source: `GroupCoordinator` and `GroupMetadataManager.cleanupGroupMetadata` of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from urteil.broker.base.clock import Clock
from urteil.broker.coordination.periodic import run_periodically
from urteil.broker.groups import records
from urteil.broker.groups.coordinator import GroupCoordinator
from urteil.broker.groups.group import Group
from urteil.broker.groups.group_state import GroupState
from urteil.broker.groups.pending_offsets import Committed
from urteil.broker.groups.shard import Shard
from urteil.broker.groups.subscriptions import CONSUMER, subscribed_topics
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.schema import Message

log = logging.getLogger("groups")

Place = tuple[str, int]
MINUTE_MS = 60_000


class GroupMaintenance:
    """Works on the groups of `coordinator`."""

    def __init__(self, coordinator: GroupCoordinator, clock: Clock) -> None:
        self._coordinator = coordinator
        self._clock = clock
        self._expiration: asyncio.Task[None] | None = None

    def start(self, interval_ms: int, retention_minutes: int) -> None:
        """Expire unused offsets every `interval_ms`, after `retention_minutes`."""
        repeated = run_periodically(
            interval_ms,
            lambda: self.expire(retention_minutes * MINUTE_MS),
            log,
            "the removal of expired offsets",
        )
        self._expiration = asyncio.get_running_loop().create_task(repeated)

    def stop(self) -> None:
        if self._expiration is not None:
            self._expiration.cancel()

    # -- listing --------------------------------------------------------------------------------

    def list_groups(self) -> tuple[ErrorCode, list[Group]]:
        """All groups; COORDINATOR_LOAD_IN_PROGRESS until all shards are loaded."""
        shards = self._coordinator.shards()
        loading = any(not shard.is_loaded for shard in shards)
        groups = [group for shard in shards for group in shard.groups.values()]
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE, groups

    def describe(self, group_id: str) -> tuple[ErrorCode, Group | None]:
        """A group; None without an error if it does not exist (Kafka reports it as Dead)."""
        shard, error = self._coordinator.find(group_id)
        return error, None if shard is None else shard.groups.get(group_id)

    # -- deleting -------------------------------------------------------------------------------

    async def delete(self, group_id: str) -> ErrorCode:
        """Delete a group with all its offsets, including those of open transactions.

        NON_EMPTY_GROUP while it has members.
        """
        shard, error = self._coordinator.find(group_id)
        if shard is None:
            return error
        group = shard.groups.get(group_id)
        if group is None or group.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is not GroupState.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        places = list(shard.offsets.get(group_id, ()))
        return await self._delete(shard, group, places, whole=True, ordered=True)

    async def delete_offsets(
        self, group_id: str, places: Sequence[Place]
    ) -> tuple[ErrorCode, dict[Place, ErrorCode]]:
        """Delete offsets, except those of topics that members subscribe to."""
        shard, error = self._coordinator.find(group_id)
        if shard is None:
            return error, {}
        group = shard.groups.get(group_id)
        if group is None or group.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND, {}
        errors = dict.fromkeys(places, ErrorCode.NONE)
        if group.state is not GroupState.EMPTY:
            if group.protocol_type != CONSUMER:
                return ErrorCode.NON_EMPTY_GROUP, {}
            topics = subscribed_topics(group)
            for topic, partition in places:
                if topics is None or topic in topics:
                    errors[topic, partition] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        deleted_places = [place for place, error in errors.items() if error is ErrorCode.NONE]
        if deleted_places:  # otherwise the group stays, even without offsets
            whole = self._is_empty_without(shard, group, deleted_places)
            error = await self._delete(shard, group, deleted_places, whole=whole)
        return error, errors if error is ErrorCode.NONE else {}

    async def topics_deleted(self, partitions: Iterable[Place]) -> None:
        """Delete the offsets of deleted partitions, and every group that has no offsets, as Apache
        Kafka does: even a group without offsets in these partitions."""
        deleted = list(partitions)
        for shard in self._coordinator.shards():
            for group in list(shard.groups.values()):
                whole = self._is_empty_without(shard, group, deleted)
                await self._delete(shard, group, deleted, whole=whole)

    async def _delete(
        self,
        shard: Shard,
        group: Group,
        places: Sequence[Place],
        *,
        whole: bool,
        ordered: bool = False,
    ) -> ErrorCode:
        """Append tombstones for offsets and, with `whole`, for the group itself.

        As in Apache Kafka, without waiting for replicas.
        """
        name = group.group_id
        known = shard.offsets.get(name, {})
        entries: list[tuple[Message, Message | None]] = [
            (records.OffsetCommitKey(group=name, topic=topic, partition=partition), None)
            for topic, partition in places
            if (topic, partition) in known
            or shard.pending.is_being_appended((name, topic, partition))
        ]
        if whole and group.generation > 0:  # a group that never had members has no record
            entries.append((records.GroupMetadataKey(group=name), None))
        if entries:
            error = await self._coordinator.append(shard, entries, acks=0)
            if error is not ErrorCode.NONE:
                return error
        shard.pending.mark_deleted([(name, *place) for place in places])
        # unless a member joined meanwhile
        if whole and self._is_empty_without(shard, group, (), ordered=ordered):
            self._coordinator.remove(shard, group)
        return ErrorCode.NONE

    # -- expiration -----------------------------------------------------------------------------

    async def expire(self, retention_ms: int) -> None:
        """Delete unused offsets that are older than `retention_ms`, and groups that have neither
        members nor offsets (KIP-211, KIP-496)."""
        now_ms = self._clock.now_ms()
        for shard in self._coordinator.shards():
            if not shard.is_loaded:
                continue
            for group in list(shard.groups.values()):
                deleted_places = self._expired_places(shard, group, now_ms, retention_ms)
                whole = self._is_empty_without(shard, group, deleted_places)
                if deleted_places or whole:
                    await self._delete(shard, group, deleted_places, whole=whole)
                await asyncio.sleep(0)  # yield to requests between groups

    def _is_empty_without(
        self, shard: Shard, group: Group, deleted_places: Sequence[Place], *, ordered: bool = False
    ) -> bool:
        """Whether the group is empty without these offsets.

        A requested deletion (`ordered`) does not wait for open transactions.
        """
        name = group.group_id
        remaining = set(shard.offsets.get(name, ())) - set(deleted_places)
        awaits = shard.pending.is_appending if ordered else shard.pending.concerns
        return group.state is GroupState.EMPTY and not remaining and not awaits(name)

    def _expired_places(
        self, shard: Shard, group: Group, now_ms: int, retention_ms: int
    ) -> list[Place]:
        known = shard.offsets.get(group.group_id, {})
        if group.protocol_type is None:
            since_ms, spared = None, frozenset[str]()
        elif group.state is GroupState.EMPTY:
            since_ms, spared = group.empty_since_ms, frozenset[str]()
        elif group.state is GroupState.STABLE and (topics := subscribed_topics(group)) is not None:
            since_ms, spared = None, topics
        else:
            return []
        return [
            place
            for place, committed in known.items()
            if place[0] not in spared
            and not shard.pending.is_pending((group.group_id, *place))
            and _expires_ms(committed, since_ms, retention_ms) <= now_ms
        ]


def _expires_ms(committed: Committed, empty_since_ms: int | None, retention_ms: int) -> int:
    value = committed.value
    if value.expires:
        return value.expire_timestamp
    return (value.commit_timestamp if empty_since_ms is None else empty_since_ms) + retention_ms
