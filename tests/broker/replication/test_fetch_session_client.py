"""Fetch sessions of followers: the client against the leader's side."""

from __future__ import annotations

import random
from pathlib import Path
from uuid import UUID

from tests.broker.replication.plain import TOPIC_ID, Plain, state
from urteil.broker.replication.fetch_session_client import FetchSessionClient
from urteil.broker.replication.fetch_sessions import (
    SAFE_MS,
    FetchSession,
    FetchSessions,
    requested_partitions,
)
from urteil.broker.replication.fetch_target import FetchTarget
from urteil.broker.replication.followed_partition import FollowedPartition
from urteil.broker.replication.partition_read import FetchTerms, PartitionRead, read_partition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest, FetchResponse

TERMS = FetchTerms(replica_id=2, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)


class Leader:
    """Answers like the handler, of one partition."""

    def __init__(self, plain: Plain, slots: int = 10) -> None:
        self.plain = plain
        self.sessions = FetchSessions(slots, random.Random(1))

    def answer(self, request: FetchRequest) -> FetchResponse:
        """As the handler does it, without waiting."""
        if request.session_epoch > 0:
            session = self.sessions.find(request.session_id, request.session_epoch, uses_ids=True)
            if isinstance(session, ErrorCode):
                return FetchResponse(error_code=session)
            session.update(request, self._resolve)
            self.sessions.touch(session, 0.0)
            session.advance()
            reads = [self._read(target) for target in session.fetch_targets(self._resolve)]
            news = list(session.changed_partitions(reads))
        else:
            self.sessions.close(request.session_id)
            asked = dict(requested_partitions(request, by_id=True))
            partitions = [self._resolve(key[0], partition) for key, partition in asked.items()]
            reads = [self._read(partition) for partition in partitions]
            opened = self.sessions.open(len(asked), 0.0, is_privileged=True, uses_ids=True)
            assert opened is not None
            session = opened
            for key, target, read in zip(asked, partitions, reads, strict=True):
                session.add(key, target, read)
            news = [(key[0], *rest) for key, *rest in zip(asked, partitions, reads, strict=True)]
        return FetchResponse(
            session_id=session.id,
            responses=[
                FetchResponse.FetchableTopicResponse(
                    topic_id=topic_id,
                    partitions=[
                        FetchResponse.PartitionData(
                            error_code=read.error,
                            high_watermark=read.high_watermark,
                            log_start_offset=read.log_start_offset,
                            records=memoryview(b"".join(read.records)),
                        )
                    ],
                )
                for topic_id, _, read in news
            ],
        )

    def _resolve(
        self, topic_id: UUID | str, asked: FetchRequest.FetchPartition, called: str = ""
    ) -> FetchTarget:
        assert topic_id == TOPIC_ID
        return FetchTarget("t", self.plain.partition, asked, ErrorCode.NONE)

    def _read(self, fetch_target: FetchTarget) -> PartitionRead:
        return read_partition(
            self.plain.partition, fetch_target.request, TERMS, 1 << 20, 0.0, min_one=True
        )


class Follower:
    def __init__(self, plain: Plain) -> None:
        self.following = FollowedPartition(plain.partition)
        self.client = FetchSessionClient(1 << 20)

    def fetch(self, leader: Leader, *, ready: bool = True) -> tuple[int, int]:
        """(requested partitions, partitions in the response)."""
        request = self.client.request([self.following] if ready else [], FetchRequest())
        response = leader.answer(request)
        self.client.on_response(response)
        for topic in response.responses:
            for data in topic.partitions:
                assert self.following.apply_response(data, 0) is ErrorCode.NONE
        return len(request.topics), len(response.responses)


def pair(tmp_path: Path, slots: int = 10) -> tuple[Leader, Follower]:
    leader, follower = Plain(tmp_path / "a"), Plain(tmp_path / "b", broker_id=2)
    leader.partition.become_leader(state(1, 1, (1, 2), replicas=(1, 2)), 0.0)
    follower.partition.become_follower(state(1, 1, (1, 2), replicas=(1, 2)))
    return Leader(leader, slots), Follower(follower)


def test_response_has_only_changed_partitions(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    assert follower.fetch(leader) == (1, 1), "the first one is full"
    assert follower.fetch(leader) == (0, 0)
    leader.plain.append(3)
    assert follower.fetch(leader) == (0, 1), "records, without being asked again"
    assert follower.fetch(leader) == (1, 0), "the new offset"
    assert follower.fetch(leader) == (0, 1), "the high watermark that it moved"
    assert follower.following.partition.log.high_watermark == 3
    assert follower.fetch(leader) == (0, 0)


def test_forgotten_partition_is_not_in_the_response(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    follower.fetch(leader)
    assert follower.fetch(leader, ready=False) == (0, 0)
    leader.plain.append(1)
    assert follower.fetch(leader, ready=False) == (0, 0)
    assert follower.fetch(leader) == (1, 1)


def test_lost_session_is_restarted(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    follower.fetch(leader)
    leader.sessions = FetchSessions(10, random.Random(2))
    assert follower.fetch(leader) == (0, 0), "refused"
    assert follower.fetch(leader) == (1, 1), "full again"


def test_lost_response_restarts_the_session(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    follower.fetch(leader)
    leader.plain.append(2)
    leader.answer(follower.client.request([follower.following], FetchRequest()))
    follower.client.on_failure()
    assert follower.fetch(leader) == (1, 1)
    assert follower.following.partition.log.log_end_offset == 2


def test_wrong_session_epoch_is_rejected(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    follower.fetch(leader)
    session_id = next(iter(leader.sessions._sessions))
    stale = FetchRequest(session_id=session_id, session_epoch=9)
    assert leader.answer(stale).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    unknown = FetchRequest(session_id=session_id + 1, session_epoch=1)
    assert leader.answer(unknown).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


# -- the cache ----------------------------------------------------------------------------------


def opened(
    sessions: FetchSessions, size: int, now_ms: float = 0.0, *, follower: bool = False
) -> FetchSession | None:
    return sessions.open(size, now_ms, is_privileged=follower, uses_ids=True)


def test_no_session_without_cache_slots() -> None:
    assert opened(FetchSessions(0, random.Random(3)), 5) is None


def test_young_consumer_session_is_not_evicted_by_a_consumer() -> None:
    sessions = FetchSessions(1, random.Random(3))
    first = opened(sessions, 5)
    assert first is not None
    assert opened(sessions, 50, SAFE_MS) is None
    assert sessions.find(first.id, 1, uses_ids=True) is first


def test_larger_session_evicts_an_old_smaller_one() -> None:
    sessions = FetchSessions(2, random.Random(3))
    old, small = opened(sessions, 5), opened(sessions, 3)
    assert old is not None
    assert small is not None
    for session in (old, small):
        sessions.touch(session, SAFE_MS)
        session.ranked_size = 5 if session is old else 3
    now_ms = SAFE_MS + 1
    assert opened(sessions, 2, now_ms) is None, "smaller than any"
    assert opened(sessions, 4, now_ms) is not None
    assert sessions.find(small.id, 1, uses_ids=True) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.find(old.id, 1, uses_ids=True) is old


def test_idle_session_is_evicted_by_any_other() -> None:
    sessions = FetchSessions(1, random.Random(3))
    opened(sessions, 500, follower=True)
    assert opened(sessions, 1, SAFE_MS) is None
    assert opened(sessions, 1, SAFE_MS + 1) is not None
    assert len(sessions) == 1


def test_follower_session_evicts_a_consumer_session() -> None:
    sessions = FetchSessions(1, random.Random(3))
    consumer = opened(sessions, 500)
    follower = opened(sessions, 1, follower=True)
    assert consumer is not None
    assert follower is not None
    assert opened(sessions, 500) is None
    assert opened(sessions, 1, follower=True) is None, "both are young"
    assert sessions.partitions == 1


def test_session_uses_either_topic_ids_or_names() -> None:
    sessions = FetchSessions(1, random.Random(3))
    session = opened(sessions, 1)
    assert session is not None
    session_or_error = sessions.find(session.id, 1, uses_ids=False)
    assert session_or_error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    session.epoch = 2**31 - 1
    assert session.advance() == 1


def test_partitions_with_records_take_turns() -> None:
    """An answer is filled in the session's order, and may be full after the first."""
    session = FetchSession(1, 0.0, is_privileged=True, uses_ids=True)
    request = FetchRequest(
        topics=[
            FetchRequest.FetchTopic(
                topic_id=UUID(int=number), partitions=[FetchRequest.FetchPartition()]
            )
            for number in (1, 2, 3)
        ]
    )
    session.update(request, nowhere)
    first = []
    for _ in range(4):
        first.append(session.fetch_targets(nowhere)[0].topic)
        list(session.changed_partitions([PartitionRead(size=1), PartitionRead(), PartitionRead()]))
    assert first == ["1", "2", "3", "1"]


def nowhere(topic_id: UUID | str, asked: FetchRequest.FetchPartition, called: str) -> FetchTarget:
    assert isinstance(topic_id, UUID)
    topic = str(topic_id.int)
    return FetchTarget(topic, None, asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
