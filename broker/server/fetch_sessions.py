"""Incremental fetch sessions of followers, as their leader keeps them (KIP-227).

A follower tells only what changed since its last fetch and hears only of partitions with news.
Consumers are not given sessions: an answer with session id 0 lets them go on with full fetches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from urteil.broker.replication.reading import IDLE, PartitionRead
from urteil.broker.replication.wanted import Wanted
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1

# Finds what a topic id's partition is here.
Resolve = Callable[[UUID, FetchRequest.FetchPartition], Wanted]
Key = tuple[UUID, int]


@dataclass(slots=True)
class _Cached:
    """One partition of a session: what the follower asks, and what it was told last."""

    wanted: Wanted
    told_high_watermark: int = -1
    told_log_start: int = -1

    def note(self, read: PartitionRead) -> bool:
        """Remember what is told; whether it is worth telling."""
        if read.error is not ErrorCode.NONE:
            self.told_high_watermark = -1  # so that its end is told, too
            return True
        is_news = (
            bool(read.size)
            or read.diverges
            or read.high_watermark != self.told_high_watermark
            or read.log_start_offset != self.told_log_start
        )
        self.told_high_watermark = read.high_watermark
        self.told_log_start = read.log_start_offset
        return is_news

    def still(self) -> PartitionRead | None:
        """An idle partition's watermarks, if they moved without new records."""
        assert self.wanted.partition is not None
        log = self.wanted.partition.log
        if (log.high_watermark, log.log_start_offset) == (
            self.told_high_watermark,
            self.told_log_start,
        ):
            return None
        return PartitionRead(
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
        )


class FetchSession:
    """What one follower fetches from this leader."""

    def __init__(self, session_id: int) -> None:
        self.id = session_id
        self.next_epoch = 1
        self._cached: dict[Key, _Cached] = {}

    def take(self, request: FetchRequest, resolve: Resolve) -> list[Wanted]:
        """Apply the request's changes; returns everything the session fetches."""
        for topic in request.topics:
            for asked in topic.partitions:
                key = (topic.topic_id, asked.partition)
                known = self._cached.get(key)
                if known is None:
                    self._cached[key] = _Cached(resolve(topic.topic_id, asked))
                else:
                    known.wanted = resolve(topic.topic_id, asked)
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                self._cached.pop((forgotten.topic_id, index), None)
        for key, cached in self._cached.items():
            if cached.wanted.is_outdated:
                cached.wanted = resolve(key[0], cached.wanted.request)
        return [cached.wanted for cached in self._cached.values()]

    def news(
        self, reads: Iterable[PartitionRead], *, is_full: bool
    ) -> Iterator[tuple[UUID, Wanted, PartitionRead]]:
        """The partitions worth telling of: records, errors, divergence, moved watermarks.

        Those with records come last from now on, lest they take the whole of every answer while
        the others starve and leave the ISR (KIP-227).
        """
        served = []
        for (key, cached), read in zip(self._cached.items(), reads, strict=True):
            told = cached.still() if read is IDLE else read
            if told is not None and (cached.note(told) or is_full):
                yield key[0], cached.wanted, told
            if read.size:
                served.append(key)
        for key in served:
            self._cached[key] = self._cached.pop(key)


class FetchSessions:
    """At most `slots` sessions; the one not used for longest makes room."""

    def __init__(self, slots: int, rng: random.Random) -> None:
        self._slots = slots
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}

    def use(self, request: FetchRequest) -> FetchSession | ErrorCode | None:
        """The request's session, new or known; None for a fetch without one; or why not."""
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            return self._open() if request.session_epoch == INITIAL_EPOCH else None
        session = self._sessions.pop(request.session_id, None)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        self._sessions[session.id] = session
        if request.session_epoch != session.next_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        session.next_epoch = 1 if session.next_epoch == MAX_EPOCH else session.next_epoch + 1
        return session

    def _open(self) -> FetchSession | None:
        if self._slots <= 0:
            return None
        while len(self._sessions) >= self._slots:
            self._sessions.pop(next(iter(self._sessions)))
        session_id = self._rng.randint(1, MAX_EPOCH)
        while session_id in self._sessions:
            session_id = self._rng.randint(1, MAX_EPOCH)
        session = self._sessions[session_id] = FetchSession(session_id)
        return session
