"""One partition of a fetch request, resolved on this broker."""

from __future__ import annotations

from urteil.broker.replication.partition import Partition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest


class FetchTarget:
    """A requested partition; if it cannot be fetched here, `partition` is None and `error` set.

    A fetch session reuses it between fetches. `settled_epoch` is the leader epoch in which a read
    at the same offset found no divergence. Within an epoch the leader's log only grows, so a
    repeated fetch at that offset needs no check.
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
        """Whether the partition must be resolved again: it was not hosted, or is not any more."""
        return self.partition is None or self.partition.is_retired
