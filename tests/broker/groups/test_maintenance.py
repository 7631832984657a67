"""Positions and groups that nobody uses are forgotten, and no others (KIP-211, KIP-496)."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from urteil.broker.base.clock import Clock
from urteil.broker.groups.group import Group, GroupState
from urteil.broker.groups.maintenance import GroupMaintenance
from urteil.broker.groups.member import Member
from urteil.broker.groups.pending_offsets import Committed
from urteil.broker.groups.records import OffsetCommitKey, OffsetCommitValue
from urteil.broker.groups.shard import Shard
from urteil.broker.groups.subscriptions import subscribed_topics
from urteil.broker.wire.errors import ErrorCode

NOW_MS, RETENTION_MS = 1_000_000, 1_000
OLD_MS, NEW_MS = NOW_MS - RETENTION_MS, NOW_MS - RETENTION_MS + 1


class Still(Clock):
    def now_ms(self) -> int:
        return NOW_MS


class Tombstones:
    """The coordinator's side: one shard, and appends that are in effect at once."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.removed: list[str] = []

    def shards(self) -> list[Shard]:
        return [self.shard]

    async def append(
        self, shard: Shard, entries: Sequence[tuple[Any, Any]], *, acks: int
    ) -> ErrorCode:
        assert acks == 0
        for key, value in entries:
            assert value is None
            if isinstance(key, OffsetCommitKey):
                del shard.offsets[key.group][key.topic, key.partition]
        return ErrorCode.NONE

    def find(self, group_id: str) -> tuple[Shard, ErrorCode]:
        return self.shard, ErrorCode.NONE

    def remove(self, shard: Shard, group: Group) -> None:
        self.removed.append(group.group_id)


def shard_with(group: Group, **stamps: int) -> Shard:
    """Positions in partition 0 of topics, committed at these times."""
    shard = Shard(0)
    shard.is_loaded = True
    shard.groups[group.group_id] = group
    shard.offsets[group.group_id] = {
        (topic, 0): Committed(
            OffsetCommitValue(offset=1, metadata="", commit_timestamp=stamp), number
        )
        for number, (topic, stamp) in enumerate(stamps.items())
    }
    return shard


class Late(Tombstones):
    """A position comes back while the tombstones are on their way."""

    async def append(
        self, shard: Shard, entries: Sequence[tuple[Any, Any]], *, acks: int
    ) -> ErrorCode:
        error = await super().append(shard, entries, acks=acks)
        value = OffsetCommitValue(offset=2, metadata="", commit_timestamp=NOW_MS)
        shard.offsets["g"]["a", 0] = Committed(value, 99)
        return error


def test_offset_committed_during_deletion_stays() -> None:
    shard = shard_with(group_of(protocol_type=None), a=OLD_MS)
    coordinator = Late(shard)
    asyncio.run(GroupMaintenance(coordinator, Still()).expire(RETENTION_MS))  # type: ignore[arg-type]
    assert (list(shard.offsets["g"]), coordinator.removed) == ([("a", 0)], [])


def left_of(shard: Shard) -> tuple[set[str], list[str]]:
    coordinator = Tombstones(shard)
    asyncio.run(GroupMaintenance(coordinator, Still()).expire(RETENTION_MS))  # type: ignore[arg-type]
    (known,) = shard.offsets.values()
    return {topic for topic, _ in known}, coordinator.removed


@pytest.mark.parametrize("commits", [0, 1])
def test_empty_group_expires_after_its_commit(commits: int) -> None:
    group = group_of(protocol_type=None)
    group.generation = 0
    shard = shard_with(group)
    shard.pending.begin_append([("g", "a", 0)] * commits)
    assert left_of(shard) == (set(), [] if commits else ["g"])


def subscription(*topics: str) -> bytes:
    names = b"".join(struct.pack(f">h{len(t)}s", len(t), t.encode()) for t in topics)
    return struct.pack(">hi", 1, len(topics)) + names + struct.pack(">i", -1)


def group_of(*subscriptions: bytes, protocol_type: str | None = "consumer") -> Group:
    group = Group("g", initial_delay_ms=0, max_size=10)
    group.protocol_type, group.generation = protocol_type, 1
    group.protocol = "range" if subscriptions else None
    for number, metadata in enumerate(subscriptions):
        group.members[f"m{number}"] = Member(
            member_id=f"m{number}",
            instance_id=None,
            client_id="c",
            client_host="/h",
            session_timeout_ms=1,
            rebalance_timeout_ms=1,
            protocols=(("range", metadata),),
            deadline_ms=0,
        )
    group.state = GroupState.STABLE if subscriptions else GroupState.EMPTY
    return group


def test_offsets_of_a_simple_consumer_expire_by_commit_time() -> None:
    group = group_of(protocol_type=None)
    assert left_of(shard_with(group, old=OLD_MS, new=NEW_MS)) == ({"new"}, [])
    assert left_of(shard_with(group, old=OLD_MS)) == (set(), ["g"])


@pytest.mark.parametrize(
    ("since_ms", "left", "removed"), [(NEW_MS, {"old", "new"}, []), (OLD_MS, set(), ["g"])]
)
def test_offsets_of_an_empty_group_expire_after_retention(
    since_ms: int, left: set[str], removed: list[str]
) -> None:
    group = group_of()
    group.empty_since_ms = since_ms
    assert left_of(shard_with(group, old=OLD_MS, new=NEW_MS)) == (left, removed)


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    group = group_of(subscription("mine"), subscription("ours", "mine"))
    shard = shard_with(group, mine=OLD_MS, ours=OLD_MS, others=OLD_MS, recent=NEW_MS)
    assert left_of(shard) == ({"mine", "ours", "recent"}, [])


@pytest.mark.parametrize("metadata", [b"", b"\0\1", struct.pack(">hih", 1, 2, 9) + b"short"])
def test_unreadable_subscription_keeps_all_offsets(metadata: bytes) -> None:
    group = group_of(metadata)
    assert subscribed_topics(group) is None
    assert left_of(shard_with(group, others=OLD_MS)) == ({"others"}, [])


def test_pending_transactional_offset_does_not_expire() -> None:
    group = group_of(protocol_type=None)
    shard = shard_with(group, old=OLD_MS)
    shard.pending.add(7, ("g", "old", 0), shard.offsets["g"]["old", 0])
    assert left_of(shard) == ({"old"}, [])


def test_deleted_topics_remove_groups_without_offsets() -> None:
    """Also one that never had a position in them, as in Apache Kafka; no other."""
    shards = [shard_with(group_of(protocol_type=None)), shard_with(group_of(), gone=NEW_MS)]
    shards += [shard_with(group_of(), gone=NEW_MS, left=NEW_MS), shard_with(group_of(b""))]
    removed = []
    for shard in shards:
        coordinator = Tombstones(shard)
        gone = [("gone", 0), ("gone", 1)]
        asyncio.run(GroupMaintenance(coordinator, Still()).topics_deleted(gone))  # type: ignore[arg-type]
        assert ("gone", 0) not in shard.offsets["g"]
        removed.append(coordinator.removed)
    assert removed == [["g"], ["g"], [], []]


PENDING = Committed(OffsetCommitValue(offset=5, metadata="", commit_timestamp=NOW_MS), 50)


def test_open_transaction_does_not_prevent_group_deletion() -> None:
    shard = shard_with(group_of(), a=NEW_MS)
    shard.pending.add(7, ("g", "a", 0), PENDING)
    coordinator = Tombstones(shard)
    administration = GroupMaintenance(coordinator, Still())  # type: ignore[arg-type]
    assert asyncio.run(administration.delete("g")) is ErrorCode.NONE
    assert coordinator.removed == ["g"]


def test_commit_being_appended_keeps_a_deleted_group() -> None:
    shard = shard_with(group_of(), a=NEW_MS)
    shard.pending.begin_append([("g", "a", 0)])
    coordinator = Tombstones(shard)
    administration = GroupMaintenance(coordinator, Still())  # type: ignore[arg-type]
    assert asyncio.run(administration.delete("g")) is ErrorCode.NONE
    assert coordinator.removed == []


def test_deleted_offset_of_an_open_transaction_is_not_committed() -> None:
    """But until it ends the group stays."""
    shard = shard_with(group_of(), a=NEW_MS)
    for topic in "ab":
        shard.pending.add(7, ("g", topic, 0), PENDING)
    coordinator = Tombstones(shard)
    administration = GroupMaintenance(coordinator, Still())  # type: ignore[arg-type]
    for topic in "ab":
        places = [(topic, 0)]
        assert asyncio.run(administration.delete_offsets("g", places)) == (
            ErrorCode.NONE,
            {(topic, 0): ErrorCode.NONE},
        )
        assert not shard.pending.is_pending(("g", topic, 0))
    assert coordinator.removed == []
    shard.transaction_ended(7, 60, commit=True)
    assert shard.offsets["g"] == {}
    assert not shard.pending.concerns("g")


@pytest.mark.parametrize(("expires_ms", "left"), [(NOW_MS, {"kept"}), (NOW_MS + 1, {"a", "kept"})])
def test_offset_with_its_own_expiration_expires_by_it(expires_ms: int, left: set[str]) -> None:
    """As the first versions of OffsetCommit could say; for long, too."""
    shard = shard_with(group_of(protocol_type=None), a=NEW_MS, kept=OLD_MS)
    for topic, until_ms in (("a", expires_ms), ("kept", NOW_MS + 1)):
        known = shard.offsets["g"][topic, 0]
        value = replace(known.value, expire_timestamp=until_ms)
        shard.offsets["g"][topic, 0] = Committed(value, known.log_offset)
    assert left_of(shard) == (left, [])


def test_requests_are_served_during_a_large_expiration() -> None:
    shard = shard_with(group_of(), a=OLD_MS)
    for number in range(20):
        group = group_of()
        group.group_id = f"g{number}"
        shard.groups[group.group_id] = group
    coordinator: Any = Tombstones(shard)
    administration = GroupMaintenance(coordinator, Still())
    counts = set()

    async def scenario() -> None:
        expiring = asyncio.ensure_future(administration.expire(RETENTION_MS))
        while not expiring.done():
            counts.add(len(coordinator.removed))
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert len(coordinator.removed) == 21
    assert len(counts) > 20
