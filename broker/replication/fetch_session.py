"""What one reader fetches from this broker, and what it was told last (KIP-227, `FetchSession`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from uuid import UUID

from urteil.broker.replication.fetch_target import FetchTarget
from urteil.broker.replication.partition_read import IDLE, PartitionRead
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest

MAX_EPOCH = 2**31 - 1

Topic = UUID | str
"""A topic's id from Fetch 13 on, its name before."""
Key = tuple[Topic, int]
Resolve = Callable[[Topic, FetchRequest.FetchPartition, str], FetchTarget]
"""Finds what a partition is on this broker; the text is its topic's name, once that is known."""


class _Cached:
    """One partition of a session. There are many: nothing is kept that can be found again."""

    __slots__ = ("told_high_watermark", "told_log_start", "wanted")

    def __init__(self, wanted: FetchTarget) -> None:
        self.wanted = wanted
        self.told_high_watermark = self.told_log_start = -1

    def note(self, read: PartitionRead) -> bool:
        """Remember what is told; whether it is worth telling."""
        if read.error is not ErrorCode.NONE:
            self.told_high_watermark = -1  # so that its end is told, too
            return True
        is_news = (
            bool(read.size)
            or read.diverges
            or read.preferred_replica >= 0
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
    """The partitions of one reader, in the order in which they are read.

    `epoch` is the one that its next request must bear. `is_privileged`: a follower's.
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

    def begin(
        self, keys: Sequence[Key], wanted: Sequence[FetchTarget], reads: Iterable[PartitionRead]
    ) -> None:
        """Keep what a full fetch asked for and was told."""
        for key, one, read in zip(keys, wanted, reads, strict=True):
            cached = self._cached[key] = _Cached(one)
            cached.note(read)

    def update(self, request: FetchRequest, resolve: Resolve) -> None:
        """Apply what the request adds, changes and forgets."""
        for key, asked in asked_for(request, by_id=self.uses_ids):
            known = self._cached.get(key)
            wanted = resolve(key[0], asked, known.wanted.topic if known else "")
            if known is None:
                self._cached[key] = _Cached(wanted)
            else:
                known.wanted = wanted
        for forgotten in request.forgotten_topics_data:
            topic = forgotten.topic_id if self.uses_ids else forgotten.topic
            for index in forgotten.partitions:
                self._cached.pop((topic, index), None)

    def wanted(self, resolve: Resolve) -> list[FetchTarget]:
        """Everything the session fetches."""
        for key, cached in self._cached.items():
            if cached.wanted.is_outdated:
                cached.wanted = resolve(key[0], cached.wanted.request, cached.wanted.topic)
        return [cached.wanted for cached in self._cached.values()]

    def advance(self) -> int:
        """Take a request of the current epoch as come; returns the epoch of the next one."""
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1
        return self.epoch

    def news(
        self, reads: Iterable[PartitionRead]
    ) -> Iterator[tuple[Topic, FetchTarget, PartitionRead]]:
        """The partitions worth telling of: records, errors, divergence, moved watermarks.

        Those with records come last from now on, lest they take the whole of every answer while
        the others starve and leave the ISR (KIP-227).
        """
        served = []
        for (key, cached), read in zip(self._cached.items(), reads, strict=True):
            told = cached.still() if read is IDLE else read
            if told is not None and cached.note(told):
                yield key[0], cached.wanted, told
            if read.size:
                served.append(key)
        for key in served:
            self._cached[key] = self._cached.pop(key)


def asked_for(
    request: FetchRequest, *, by_id: bool
) -> Iterator[tuple[Key, FetchRequest.FetchPartition]]:
    """Every partition that a request lists."""
    for topic in request.topics:
        name: Topic = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            yield (name, asked.partition), asked
