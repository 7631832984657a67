"""The follower's side of an incremental fetch session with one leader (KIP-227)."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from urteil.broker.replication.followed_partition import FollowedPartition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest, FetchResponse

Key = tuple[UUID, int]
INITIAL_EPOCH = 0
MAX_EPOCH = 2**31 - 1


class FetchSessionClient:
    """Builds requests with only the partitions that changed since the last answered request."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._session_id = 0
        self._epoch = INITIAL_EPOCH
        self._sent_positions: dict[Key, tuple[int, int, int, int]] = {}

    def request(self, ready: Iterable[FollowedPartition], template: FetchRequest) -> FetchRequest:
        """`template` with this session, the changed partitions and those to forget."""
        if self._epoch == INITIAL_EPOCH:
            self._sent_positions = {}
        topics: dict[UUID, list[FetchRequest.FetchPartition]] = {}
        removed = set(self._sent_positions)
        for followed in ready:
            position = followed.position()
            removed.discard(followed.wire_key)
            if self._sent_positions.get(followed.wire_key) != position:
                self._sent_positions[followed.wire_key] = position
                fetch = followed.request(self._max_bytes)
                topics.setdefault(followed.wire_key[0], []).append(fetch)
        forgotten: dict[UUID, list[int]] = {}
        for key in sorted(removed, key=lambda key: (key[0].int, key[1])):
            del self._sent_positions[key]
            forgotten.setdefault(key[0], []).append(key[1])
        return FetchRequest(
            replica_state=template.replica_state,
            max_wait_ms=template.max_wait_ms,
            min_bytes=template.min_bytes,
            max_bytes=template.max_bytes,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=[
                FetchRequest.FetchTopic(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
            forgotten_topics_data=[
                FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in forgotten.items()
            ],
        )

    def on_response(self, response: FetchResponse) -> None:
        """Continue the session, or begin a new one if the leader did not keep it."""
        if response.error_code != ErrorCode.NONE or response.session_id == 0:
            self._session_id, self._epoch = 0, INITIAL_EPOCH
        else:
            self._session_id = response.session_id
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1

    def on_failure(self) -> None:
        """Begin a new session after a failed request; its first request closes the old one."""
        self._epoch = INITIAL_EPOCH
