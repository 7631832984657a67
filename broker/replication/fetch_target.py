"""One partition that a fetch asks for, with what it is on this broker."""

from __future__ import annotations

from urteil.broker.replication.partition import Partition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest


class FetchTarget:
    """`partition` is None and `error` set when it cannot be fetched here.

    A session keeps it from fetch to fetch: `settled_epoch` is the leader epoch in which it was
    read without divergence at this very offset. The leader's log only grows within an epoch, so
    there is nothing to check again while neither offset moves.
    """

    __slots__ = ("error", "partition", "request", "settled_epoch", "topic")

    def __init__(
        self,
        topic: str,
        partition: Partition | None,
        request: FetchRequest.FetchPartition,
        error: ErrorCode,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.request = request
        self.error = error
        self.settled_epoch = -1

    @property
    def is_outdated(self) -> bool:
        """Whether to look again what the partition is: it was not here, or is no more."""
        return self.partition is None or self.partition.is_retired
