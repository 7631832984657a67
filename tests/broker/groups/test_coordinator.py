"""The coordinator over a real log: what comes while it reads, and what an earlier term left."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.broker.net.raw import run
from tests.broker.replication.hosting import Hosting
from tests.waiting import wait_until
from urteil.broker.base.clock import Clock
from urteil.broker.groups.coordinator import OFFSETS_TOPIC, GroupCoordinator
from urteil.broker.groups.group import Group
from urteil.broker.groups.group_state import GroupState
from urteil.broker.groups.maintenance import GroupMaintenance
from urteil.broker.groups.member import JoinRequest
from urteil.broker.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    encode,
)
from urteil.broker.log.transaction_verification import TRUSTED
from urteil.broker.replication.partition import Partition
from urteil.broker.transactions.marker_sender import Marker
from urteil.broker.transactions.marker_writer import MarkerWriter
from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.errors import ErrorCode

WHERE = (OFFSETS_TOPIC, 0)
SESSION_MS = 60_000
CHUNKS, CHUNK_BYTES = 8, 900_000
"""A log that is not read at one go."""
MAX_SIZE = 10
MAGIC_AT, FIRST_RECORD_AT = 16, 61
OF_LATER = b"\0\x09"
"""The key of a later version's record."""


class Coordinating:
    """Broker 1 with the only partition of the offsets topic; needs a running loop."""

    def __init__(self, folder: Path) -> None:
        self.hosting = Hosting([folder])
        self.hosting.announce_topic(OFFSETS_TOPIC)
        self.following: asyncio.Future[None] | None = None
        self.config: Any = SimpleNamespace(
            offsets_topic_num_partitions=1,
            offsets_commit_timeout_ms=60_000,
            request_timeout_ms=60_000,
            group_initial_rebalance_delay_ms=0,
            group_max_size=MAX_SIZE,
            group_min_session_timeout_ms=1,
            group_max_session_timeout_ms=60_000,
        )
        config, clock = self.config, Clock()
        self.groups = GroupCoordinator(
            config, self.hosting.replicas, self.hosting.metadata, clock, random.Random(1)
        )
        self.markers = MarkerWriter(config, self.hosting.replicas, self.groups, clock)

    def lead(
        self, epoch: int, *, replicas: tuple[int, ...] = (1,), isr: tuple[int, ...] | None = None
    ) -> Partition:
        """Take the leadership; the groups are read when the loop gets to it."""
        given = {"epoch": epoch, "replicas": replicas, "isr": isr, "topic": OFFSETS_TOPIC}
        assert self.hosting.lead(0, **given) == 0
        partition = self.hosting.replicas.partition(*WHERE)
        assert partition is not None
        return partition

    def lead_again(self, epoch: int, **given: Any) -> Partition:
        """Take the leadership after the epoch before, in which nobody had it."""
        assert self.hosting.lead(0, epoch=epoch - 1, leader=-1, topic=OFFSETS_TOPIC, **given) == 0
        return self.lead(epoch, **given)

    async def append(self, record: Any, **producer: Any) -> None:
        data = {WHERE: memoryview(build_batch([record], **producer))}
        answers = await self.hosting.replicas.append(
            1000, -1, data, internal=True, guards={WHERE: TRUSTED}
        )
        assert answers[WHERE].error is ErrorCode.NONE

    def fail(self, failure: str) -> None:
        """What is appended from now on fails so."""
        if failure in SETTINGS:
            self.hosting.logs.configure(lambda _: SETTINGS[failure], OFFSETS_TOPIC)
        else:
            assert self.following is not None
            self.following.cancel()
            self.config.offsets_commit_timeout_ms = 1

    async def follow(self, partition: Partition) -> None:
        """As replica 2."""
        while True:
            partition.record_follower_fetch(2, partition.log.log_end_offset, 0, 0.0)
            await asyncio.sleep(0.002)

    @property
    def is_loaded(self) -> bool:
        return self.groups.find("g")[0] is not None

    @property
    def group(self) -> Group:
        return self.groups.shards()[0].groups["g"]

    def close(self) -> None:
        self.groups.stop()
        self.hosting.close()


def test_transaction_that_ends_during_loading_is_applied(tmp_path: Path) -> None:
    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.lead(0)
        for _ in range(CHUNKS):
            await here.append((OF_LATER, bytes(CHUNK_BYTES), (), 0))
        key = encode(1, OffsetCommitKey(group="g", topic="t", partition=0))
        position = (key, encode(3, OffsetCommitValue(offset=42)), (), 0)
        await here.append(position, producer_id=7, producer_epoch=0, transactional=True)
        here.lead_again(2)
        marker = Marker(producer_id=7, producer_epoch=0, commit=True, coordinator_epoch=0)
        written = await here.markers.write([(marker, (WHERE,))])
        assert written == [{WHERE: ErrorCode.NONE}]
        assert not here.is_loaded
        await wait_until(lambda: here.is_loaded)
        (shard,) = here.groups.shards()
        assert shard.offsets["g"]["t", 0].value.offset == 42
        assert not shard.pending.concerns("g")
        here.close()

    run(scenario())


def test_answer_to_an_earlier_term_renews_no_session(
    tmp_path: Path,
) -> None:
    """A member of which nothing is heard any more would stay for ever."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        partition = here.lead(0, replicas=(1, 2))
        await wait_until(lambda: here.is_loaded)
        joined = await here.groups.join("g", request())
        assert joined.error is ErrorCode.NONE
        member = joined.member_id
        waiting = asyncio.ensure_future(
            here.groups.sync("g", member, None, joined.generation, None, None, {member: b"all"})
        )
        await wait_until(lambda: partition.log.log_end_offset)
        here.lead_again(2, replicas=(1, 2))  # the assignment is not on the other replica yet
        assert (await waiting).error is ErrorCode.NOT_COORDINATOR
        await wait_until(lambda: here.is_loaded)
        assert here.group.state is GroupState.STABLE
        timers = dict(here.groups._timers)
        assert list(timers) == ["g"]
        partition.record_follower_fetch(2, partition.log.log_end_offset, 0, 0.0)
        await wait_until(lambda: not here.groups.tasks._running)
        assert here.groups._timers == timers
        here.close()

    run(scenario())


def test_leader_in_a_new_epoch_keeps_its_groups(tmp_path: Path) -> None:
    """A replica of the offsets topic that is shut down makes one; nothing was stored yet."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.lead(0)
        await wait_until(lambda: here.is_loaded)
        joined = await here.groups.join("g", request())
        here.lead(1)
        assert here.is_loaded
        synced = await here.groups.sync(
            "g", joined.member_id, None, joined.generation, None, None, {joined.member_id: b"all"}
        )
        assert synced.error is ErrorCode.NONE
        here.close()

    run(scenario())


def test_stored_group_is_the_assigned_one(tmp_path: Path) -> None:
    """Who joins at the same moment is not in it: a later coordinator would take it for a member
    that has nothing to do."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.lead(0)
        await wait_until(lambda: here.is_loaded)
        joined = await here.groups.join("g", request())
        member = joined.member_id
        syncing = asyncio.ensure_future(
            here.groups.sync("g", member, None, joined.generation, None, None, {member: b"all"})
        )
        joining = asyncio.ensure_future(here.groups.join("g", request("n")))
        assert (await syncing).error is ErrorCode.REBALANCE_IN_PROGRESS
        await wait_until(lambda: not here.groups.tasks._running)
        assert not here.groups.shards()[0]._stored_groups  # nobody needs it before the next term
        here.lead_again(2)
        await wait_until(lambda: here.is_loaded)
        stored = here.group.members.values()
        assert [(member.member_id, member.assignment) for member in stored] == [("m", b"all")]
        joining.cancel()
        here.close()

    run(scenario())


def test_offset_being_appended_is_unstable(tmp_path: Path) -> None:
    """Who asks for stable ones alone waits for it, as for one of a transaction."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        partition = here.lead(0, replicas=(1, 2))
        await wait_until(lambda: here.is_loaded)
        (shard,) = here.groups.shards()
        value = OffsetCommitValue(offset=42)
        waiting = asyncio.ensure_future(here.groups.commit("g", "", None, -1, {("t", 0): value}))
        await wait_until(lambda: partition.log.log_end_offset)
        assert shard.pending.is_pending(("g", "t", 0))
        assert not waiting.done()
        partition.record_follower_fetch(2, partition.log.log_end_offset, 0, 0.0)
        assert await waiting is ErrorCode.NONE
        assert not shard.pending.concerns("g")
        assert shard.offsets["g"]["t", 0].value.offset == 42
        here.close()

    run(scenario())


def request(new_id: str = "m", *, instance_id: str | None = None) -> JoinRequest:
    return JoinRequest(
        member_id="",
        instance_id=instance_id,
        client_id="c",
        client_host="/198.18.0.1",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(("range", b""),),
        needs_known_id=False,
        new_member_id=new_id,
    )


@pytest.mark.parametrize("damaged", [MAGIC_AT, FIRST_RECORD_AT], ids=["batch", "record"])
def test_unreadable_batch_hides_no_other_group(tmp_path: Path, damaged: int) -> None:
    """Apache Kafka goes on too: what waits for a partition that is read for ever waits for ever."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        partition = here.lead(0)
        places = [partition.log.segments.active_segment.size]
        for group in ("g", "h"):
            key = encode(1, OffsetCommitKey(group=group, topic="t", partition=0))
            await here.append((key, encode(3, OffsetCommitValue(offset=42)), (), 0))
            places.append(partition.log.segments.active_segment.size)
        path = next((tmp_path / f"{OFFSETS_TOPIC}-0").glob("*.log"))
        with path.open("r+b") as file:
            file.seek(places[1] + damaged)
            file.write(b"\x09")
        here.lead_again(2)
        await wait_until(lambda: here.is_loaded)
        (shard,) = here.groups.shards()
        assert {group for group, known in shard.offsets.items() if known} == {"g"}
        here.close()

    run(scenario())


def test_loaded_group_above_the_maximum_size_rebalances(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.lead(0)
        members = [
            GroupMetadataValue.MemberMetadata(
                member_id=f"m{number}", client_id="c", client_host="/h", rebalance_timeout=60_000,
                session_timeout=SESSION_MS, subscription=b"", assignment=b"",
            )
            for number in range(MAX_SIZE + 1)
        ]  # fmt: skip
        value = GroupMetadataValue(
            protocol_type="consumer", generation=4, protocol="range", leader="m0", members=members
        )
        key = encode(2, GroupMetadataKey(group="g"))
        await here.append((key, encode(3, value), (), 0))
        here.lead_again(2)
        await wait_until(lambda: here.is_loaded)
        assert here.groups.heartbeat("g", "m0", None, 4) is ErrorCode.REBALANCE_IN_PROGRESS
        here.close()

    run(scenario())


@pytest.mark.parametrize("static", [False, True])
def test_exception_while_storing_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, static: bool
) -> None:
    """JoinGroup of a returning static member and SyncGroup wait for the storing of the group."""

    async def failing(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a bug")

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.lead(0)
        await wait_until(lambda: here.is_loaded)
        groups, instance = here.groups, "box" if static else None
        joined = await groups.join("g", request(instance_id=instance))
        member, generation = joined.member_id, joined.generation
        given = {member: b"all"}
        if static:
            synced = await groups.sync("g", member, "box", generation, None, None, given)
            assert synced.error is ErrorCode.NONE
        monkeypatch.setattr(here.hosting.replicas, "append", failing)
        async with asyncio.timeout(30):
            if static:
                answer: Any = await groups.join("g", request("n", instance_id="box"))
            else:
                answer = await groups.sync("g", member, None, generation, None, None, given)
        assert answer.error is ErrorCode.UNKNOWN_SERVER_ERROR
        here.close()

    run(scenario())


SETTINGS = {
    "NOT_ENOUGH_REPLICAS": {"min.insync.replicas": "2"},
    "MESSAGE_TOO_LARGE": {"max.message.bytes": "1"},
}
STORE_FAILURES = [
    ("NOT_ENOUGH_REPLICAS", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE"),
    ("REQUEST_TIMED_OUT", "REQUEST_TIMED_OUT", "REBALANCE_IN_PROGRESS"),
    ("MESSAGE_TOO_LARGE", "INVALID_COMMIT_OFFSET_SIZE", "UNKNOWN_SERVER_ERROR"),
]


@pytest.mark.parametrize(("failure", "of_positions", "of_groups"), STORE_FAILURES)
def test_failed_append_reaches_members_as_their_error(
    tmp_path: Path, failure: str, of_positions: str, of_groups: str
) -> None:
    """As in `GroupMetadataManager`; a static member's return is undone."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        partition = here.lead(0, replicas=(1, 2), isr=(1,) if failure in SETTINGS else None)
        here.following = asyncio.ensure_future(here.follow(partition))
        await wait_until(lambda: here.is_loaded)
        groups, box = here.groups, {"instance_id": "box"}
        joined = await groups.join("g", request(**box))
        old, generation = joined.member_id, joined.generation
        given = {old: b"all"}
        synced = await groups.sync("g", old, "box", generation, None, None, given)
        assert synced.error is ErrorCode.NONE
        other = await groups.join("h", request())
        here.fail(failure)
        value = {("t", 0): OffsetCommitValue(offset=42)}
        assert (await groups.commit("g", old, "box", generation, value)).name == of_positions
        back = await groups.join("g", request("n", **box))
        assert (back.error.name, back.member_id, back.generation) == (of_groups, "", generation)
        assert back.leader == old
        assert groups.heartbeat("g", old, "box", generation) is ErrorCode.NONE
        assert groups.heartbeat("g", "n", "box", generation) is ErrorCode.FENCED_INSTANCE_ID
        given = {other.member_id: b"all"}
        synced = await groups.sync("h", other.member_id, None, other.generation, None, None, given)
        assert synced.error.name == of_groups
        here.following.cancel()
        here.close()

    run(scenario())


def test_group_is_loading_until_the_partition_count_is_known(
    tmp_path: Path,
) -> None:
    """The setting is only for the topic that is made: another group's partition knows no positions
    of this one."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.hosting.metadata.topics.clear()
        here.lead(0)
        await wait_until(lambda: here.groups.shards()[0].is_loaded)
        assert here.groups.find("g") == (None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        here.hosting.announce_topic(OFFSETS_TOPIC, partitions=4)
        assert here.groups.find("g") == (None, ErrorCode.NOT_COORDINATOR)
        here.close()

    run(scenario())


@pytest.mark.parametrize("commits", [1, 2], ids=["none before", "one before"])
@pytest.mark.parametrize("in_transaction", [False, True])
def test_offset_deleted_while_being_appended_stays_deleted(
    tmp_path: Path, commits: int, in_transaction: bool
) -> None:
    """Its record is before the tombstone, though it is heard of after it."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        partition = here.lead(0, replicas=(1, 2))
        await wait_until(lambda: here.is_loaded)
        (shard,) = here.groups.shards()

        def is_written(number: int) -> bool:
            return partition.log.log_end_offset > number

        committing = []
        for number in range(commits):
            positions = {("t", 0): OffsetCommitValue(offset=number)}
            is_last = number == commits - 1
            waiting = asyncio.ensure_future(
                here.groups.commit_in_transaction("g", "", None, -1, (7, 0), TRUSTED, positions)
                if in_transaction and is_last
                else here.groups.commit("g", "", None, -1, positions)
            )
            await wait_until(partial(is_written, number))
            committing.append(waiting)
            if not is_last:
                partition.record_follower_fetch(2, partition.log.log_end_offset, 0, 0.0)
                assert await waiting is ErrorCode.NONE
        administration = GroupMaintenance(here.groups, Clock())
        assert await administration.delete_offsets("g", [("t", 0)]) == (
            ErrorCode.NONE,
            {("t", 0): ErrorCode.NONE},
        )
        partition.record_follower_fetch(2, partition.log.log_end_offset, 0, 0.0)
        assert await committing[-1] is ErrorCode.NONE
        shard.transaction_ended(7, partition.log.log_end_offset, commit=True)
        assert not shard.offsets["g"]
        assert not shard.pending.concerns("g")
        here.close()

    run(scenario())


def test_late_append_does_not_restore_a_deleted_group(tmp_path: Path) -> None:
    """Its last member leaves, and it is deleted at the same moment."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        here.lead(0)
        await wait_until(lambda: here.is_loaded)
        joined = await here.groups.join("g", request())
        here.groups.leave("g", [(joined.member_id, None)])
        administration = GroupMaintenance(here.groups, Clock())
        assert await administration.delete("g") is ErrorCode.NONE
        await wait_until(lambda: not here.groups.tasks._running)
        here.lead_again(2)
        await wait_until(lambda: here.is_loaded)
        assert not here.groups.shards()[0].groups
        here.close()

    run(scenario())
