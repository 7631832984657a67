"""The fetch sessions of followers and consumers that this broker keeps (`FetchSessionCache`).

With a session a reader tells only what changed since its last fetch and hears only of partitions
with news (KIP-227). An answer with session id 0 lets it go on with full fetches.
"""

from __future__ import annotations

import random

from urteil.broker.replication.fetch_session import FetchSession
from urteil.broker.wire.errors import ErrorCode

NO_SESSION = 0
SHARDS = 8
SHARD_IDS = ((1 << 31) - 1) // SHARDS
LEAST_SESSION, MAX_SESSION = 1 - SHARD_IDS, SHARDS * SHARD_IDS - 1
"""Other ids are in no shard of Apache Kafka's cache, which fails when it looks for one."""
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
SAFE_MS = 120_000.0
"""A younger session is not evicted for a smaller one, an idler one always (KIP-227)."""


class FetchSessions:
    """At most `slots` sessions. A new one takes the place of

    - one not used for two minutes, or else
    - of the smallest one, consumers' before followers', if that is no larger than the new one and
      either older than two minutes or a consumer's while the new one is a follower's.
    """

    def __init__(self, slots: int, rng: random.Random) -> None:
        self._slots = slots
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}  # the one not used for longest first

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """How many partitions all sessions keep."""
        return sum(session.ranked_size for session in self._sessions.values())

    def find(self, session_id: int, epoch: int, *, uses_ids: bool) -> FetchSession | ErrorCode:
        """The session that a request goes on with, or why there is none."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_ids != uses_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        return session

    def touch(self, session: FetchSession, now_ms: float) -> None:
        """It was used."""
        session.last_used_ms = now_ms
        session.ranked_size = len(session)
        self._sessions[session.id] = self._sessions.pop(session.id)

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def open(
        self, size: int, now_ms: float, *, is_privileged: bool, uses_ids: bool
    ) -> FetchSession | None:
        """A new session for `size` partitions; None when there is no room for it."""
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
            one
            for one in self._sessions.values()
            if now_ms - one.created_ms > SAFE_MS or (is_privileged and not one.is_privileged)
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
