"""Fetch sessions (KIP-227): the partitions of each reader, and the session cache of this broker.

In a session a request lists only changes since the previous fetch, and a response only partitions
with news. Session id 0 in a response makes the reader continue with full fetches. Source:
`FetchSession` and `FetchSessionCache`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

from urteil.broker.replication.fetch_target import FetchTarget
from urteil.broker.replication.partition_read import IDLE, PartitionRead
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest

MAX_EPOCH = 2**31 - 1

Topic = UUID | str
"""A topic id from Fetch 13 on, a topic name before."""
Key = tuple[Topic, int]
Resolve = Callable[[Topic, FetchRequest.FetchPartition, str], FetchTarget]
"""Finds the target of a partition on this broker; the text is the topic's name, if it is known."""


class _Cached:
    """One partition of a session. Sessions have many: nothing is stored that can be looked up."""

    __slots__ = ("sent_high_watermark", "sent_log_start", "target")

    def __init__(self, fetch_target: FetchTarget) -> None:
        self.target = fetch_target
        self.sent_high_watermark = self.sent_log_start = -1

    def note(self, read: PartitionRead) -> bool:
        """Store the state that the response contains; return whether the partition belongs in the
        response."""
        if read.error is not ErrorCode.NONE:
            self.sent_high_watermark = -1  # so that the end of the error is sent, too
            return True
        is_news = (
            bool(read.size)
            or read.diverges
            or read.preferred_replica >= 0
            or read.high_watermark != self.sent_high_watermark
            or read.log_start_offset != self.sent_log_start
        )
        self.sent_high_watermark = read.high_watermark
        self.sent_log_start = read.log_start_offset
        return is_news

    def idle_read(self) -> PartitionRead | None:
        """Return the watermarks of an idle partition, if they moved without new records."""
        assert self.target.partition is not None
        log = self.target.partition.log
        if (log.high_watermark, log.log_start_offset) == (
            self.sent_high_watermark,
            self.sent_log_start,
        ):
            return None
        return PartitionRead(
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
        )


class FetchSession:
    """The partitions of one reader, in the order in which they are read.

    `epoch` is the expected epoch of the next request. `is_privileged`: the reader is a follower.
    """

    __slots__ = (
        "_cached", "created_ms", "epoch", "id", "is_privileged", "last_used_ms", "ranked_size",
        "uses_ids",
    )  # fmt: skip

    def __init__(
        self, session_id: int, now_ms: float, *, is_privileged: bool, uses_ids: bool
    ) -> None:
        self.id = session_id
        self.epoch = 1
        self.is_privileged = is_privileged
        self.uses_ids = uses_ids
        self.created_ms = self.last_used_ms = now_ms
        self.ranked_size = 0  # as of its last use
        self._cached: dict[Key, _Cached] = {}

    def __len__(self) -> int:
        return len(self._cached)

    def add(self, key: Key, fetch_target: FetchTarget, read: PartitionRead) -> None:
        """Store a partition of a full fetch and the state that its response contains."""
        cached = self._cached[key] = _Cached(fetch_target)
        cached.note(read)

    def update(self, request: FetchRequest, resolve: Resolve) -> None:
        """Apply the partitions that the request adds, changes and forgets."""
        for key, asked in requested_partitions(request, by_id=self.uses_ids):
            known = self._cached.get(key)
            target = resolve(key[0], asked, known.target.topic if known else "")
            if known is None:
                self._cached[key] = _Cached(target)
            else:
                known.target = target
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if self.uses_ids else forgotten.topic
            for index in forgotten.partitions:
                self._cached.pop((topic, index), None)

    def fetch_targets(self, resolve: Resolve) -> list[FetchTarget]:
        """Return all partitions of the session."""
        for key, cached in self._cached.items():
            if cached.target.is_outdated:
                cached.target = resolve(key[0], cached.target.request, cached.target.topic)
        return [cached.target for cached in self._cached.values()]

    def advance(self) -> int:
        """Accept a request of the current epoch; return the epoch of the next one."""
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1
        return self.epoch

    def changed_partitions(
        self, reads: Iterable[PartitionRead]
    ) -> Iterator[tuple[Topic, FetchTarget, PartitionRead]]:
        """Yield the partitions with news: records, errors, divergence, moved watermarks.

        Partitions with records move to the end, so that they do not fill every response while
        others starve and leave the ISR (KIP-227).
        """
        served = []
        for (key, cached), read in zip(self._cached.items(), reads, strict=True):
            news = cached.idle_read() if read is IDLE else read
            if news is not None and cached.note(news):
                yield key[0], cached.target, news
            if read.size:
                served.append(key)
        for key in served:
            self._cached[key] = self._cached.pop(key)


def requested_partitions(
    request: FetchRequest, *, by_id: bool
) -> Iterator[tuple[Key, FetchRequest.FetchPartition]]:
    """Yield all partitions that a request lists."""
    for topic in request.topics:
        name: Topic = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            yield (name, asked.partition), asked


NO_SESSION = 0
SHARDS = 8
SHARD_IDS = ((1 << 31) - 1) // SHARDS
LEAST_SESSION, MAX_SESSION = 1 - SHARD_IDS, SHARDS * SHARD_IDS - 1
"""The range of session ids. Apache Kafka's cache has no shard for other ids and fails on lookup."""
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
SAFE_MS = 120_000.0
"""A younger session is not evicted for a smaller one, one that is idle for longer always
(KIP-227)."""


class FetchSessions:
    """The session cache, with at most `slots` sessions. A new session evicts

    - a session that is unused for two minutes, or else
    - the smallest session, consumers' before followers', if it is no larger than the new one and
      either older than two minutes or a consumer's while the new one is a follower's.
    """

    def __init__(self, slots: int, rng: random.Random) -> None:
        self._slots = slots
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """The number of partitions in all sessions."""
        return sum(session.ranked_size for session in self._sessions.values())

    def find(self, session_id: int, epoch: int, *, uses_ids: bool) -> FetchSession | ErrorCode:
        """Return the session of a request, or the error if there is none."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_ids != uses_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        return session

    def touch(self, session: FetchSession, now_ms: float) -> None:
        """Note the use of a session."""
        session.last_used_ms = now_ms
        session.ranked_size = len(session)
        self._sessions[session.id] = self._sessions.pop(session.id)

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def open(
        self, size: int, now_ms: float, *, is_privileged: bool, uses_ids: bool
    ) -> FetchSession | None:
        """Open a session for `size` partitions; None if the cache has no room."""
        if len(self._sessions) >= self._slots and not self._evict(size, now_ms, is_privileged):
            return None
        session = FetchSession(
            self._unused_id(), now_ms, is_privileged=is_privileged, uses_ids=uses_ids
        )
        session.ranked_size = size
        self._sessions[session.id] = session
        return session

    def _evict(self, size: int, now_ms: float, is_privileged: bool) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > SAFE_MS:
            self.close(oldest.id)
            return True
        candidates = [
            session
            for session in self._sessions.values()
            if now_ms - session.created_ms > SAFE_MS
            or (is_privileged and not session.is_privileged)
        ]
        least = min(candidates, key=_worth, default=None)
        if least is None or (is_privileged, size, NO_SESSION) < _worth(least):
            return False
        self.close(least.id)
        return True

    def _unused_id(self) -> int:
        session_id = self._rng.randint(1, MAX_SESSION)
        while session_id in self._sessions:
            session_id = self._rng.randint(1, MAX_SESSION)
        return session_id


def _worth(session: FetchSession) -> tuple[bool, int, int]:
    return session.is_privileged, session.ranked_size, session.id
