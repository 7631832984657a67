"""Fetch sessions of followers: both ends against each other."""

from __future__ import annotations

import random
from pathlib import Path
from uuid import UUID

from tests.broker.replication.plain import TOPIC_ID, Plain, state
from urteil.broker.replication.follower import Following
from urteil.broker.replication.reading import FetchTerms, PartitionRead, read_partition
from urteil.broker.replication.session_client import SessionClient
from urteil.broker.replication.wanted import Wanted
from urteil.broker.server.fetch_sessions import FetchSession, FetchSessions
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest, FetchResponse

TERMS = FetchTerms(replica_id=2, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)


class Leader:
    """Answers like the handler, of one partition."""

    def __init__(self, plain: Plain, slots: int = 10) -> None:
        self.plain = plain
        self.sessions = FetchSessions(slots, random.Random(1))

    def answer(self, request: FetchRequest) -> FetchResponse:
        session = self.sessions.use(request)
        if isinstance(session, ErrorCode):
            return FetchResponse(error_code=session)
        assert isinstance(session, FetchSession)
        wanted = session.take(request, self._resolve)
        reads = [self._read(one) for one in wanted]
        told = session.news(reads, is_full=request.session_epoch == 0)
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
                for topic_id, _, read in told
            ],
        )

    def _resolve(self, topic_id: UUID, asked: FetchRequest.FetchPartition) -> Wanted:
        assert topic_id == TOPIC_ID
        return Wanted("t", self.plain.partition, asked, ErrorCode.NONE)

    def _read(self, one: Wanted) -> PartitionRead:
        return read_partition(self.plain.partition, one.request, TERMS, 1 << 20, 0.0, min_one=True)


class Follower:
    def __init__(self, plain: Plain) -> None:
        self.following = Following(plain.partition)
        self.client = SessionClient(1 << 20)

    def fetch(self, leader: Leader, *, ready: bool = True) -> tuple[int, int]:
        """(partitions asked, partitions told)."""
        request = self.client.request([self.following] if ready else [], FetchRequest())
        response = leader.answer(request)
        self.client.answered(response)
        for topic in response.responses:
            for data in topic.partitions:
                assert self.following.take(data, 0) is ErrorCode.NONE
        return len(request.topics), len(response.responses)


def pair(tmp_path: Path, slots: int = 10) -> tuple[Leader, Follower]:
    leader, follower = Plain(tmp_path / "a"), Plain(tmp_path / "b", broker_id=2)
    leader.partition.become_leader(state(1, 1, (1, 2), replicas=(1, 2)), 0.0)
    follower.partition.become_follower(state(1, 1, (1, 2), replicas=(1, 2)))
    return Leader(leader, slots), Follower(follower)


def test_only_changes_are_told(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    assert follower.fetch(leader) == (1, 1), "the first one is full"
    assert follower.fetch(leader) == (0, 0)
    leader.plain.append(3)
    assert follower.fetch(leader) == (0, 1), "records, without being asked again"
    assert follower.fetch(leader) == (1, 0), "the new offset"
    assert follower.fetch(leader) == (0, 1), "the high watermark that it moved"
    assert follower.following.partition.log.high_watermark == 3
    assert follower.fetch(leader) == (0, 0)


def test_a_forgotten_partition_is_not_told(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    follower.fetch(leader)
    assert follower.fetch(leader, ready=False) == (0, 0)
    leader.plain.append(1)
    assert follower.fetch(leader, ready=False) == (0, 0)
    assert follower.fetch(leader) == (1, 1)


def test_a_lost_session_begins_anew(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    follower.fetch(leader)
    leader.sessions = FetchSessions(10, random.Random(2))
    assert follower.fetch(leader) == (0, 0), "refused"
    assert follower.fetch(leader) == (1, 1), "full again"


def test_a_lost_answer_begins_anew(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    follower.fetch(leader)
    leader.plain.append(2)
    leader.answer(follower.client.request([follower.following], FetchRequest()))
    follower.client.failed()
    assert follower.fetch(leader) == (1, 1)
    assert follower.following.partition.log.log_end_offset == 2


def test_sessions_out_of_step_are_refused(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    follower.fetch(leader)
    session_id = next(iter(leader.sessions._sessions))
    stale = FetchRequest(session_id=session_id, session_epoch=9)
    assert leader.answer(stale).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    unknown = FetchRequest(session_id=session_id + 1, session_epoch=1)
    assert leader.answer(unknown).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_oldest_session_makes_room() -> None:
    sessions = FetchSessions(2, random.Random(3))
    made = [sessions.use(FetchRequest(session_epoch=0)) for _ in range(3)]
    ids = [one.id for one in made if isinstance(one, FetchSession)]
    first = sessions.use(FetchRequest(session_id=ids[0], session_epoch=1))
    assert first is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.use(FetchRequest(session_id=ids[2], session_epoch=1)) is made[2]
    assert FetchSessions(0, random.Random(3)).use(FetchRequest(session_epoch=0)) is None


def test_partitions_with_records_take_turns() -> None:
    """An answer is filled in the session's order, and may be full after the first."""
    session = FetchSession(1)
    topic_ids = [UUID(int=number) for number in (1, 2, 3)]
    request = FetchRequest(
        topics=[
            FetchRequest.FetchTopic(topic_id=one, partitions=[FetchRequest.FetchPartition()])
            for one in topic_ids
        ]
    )
    first = []
    for _ in range(4):
        wanted = session.take(request, lambda topic_id, asked: nowhere(str(topic_id.int), asked))
        first.append(wanted[0].topic)
        reads = [PartitionRead(size=1), PartitionRead(), PartitionRead()]
        list(session.news(reads, is_full=False))
        request = FetchRequest()
    assert first == ["1", "2", "3", "1"]


def nowhere(topic: str, asked: FetchRequest.FetchPartition) -> Wanted:
    return Wanted(topic, None, asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
