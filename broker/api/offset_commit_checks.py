"""Checks of the offsets in OffsetCommit and TxnOffsetCommit, before the coordinator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from urteil.broker.api.authorization import allowed_names
from urteil.broker.api.registry import RequestContext
from urteil.broker.groups.records import NO_TIMESTAMP, OffsetCommitValue
from urteil.broker.security.acls.acl_model import Operation, ResourceType
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import OffsetCommitRequest, TxnOffsetCommitRequest

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

Topic = (
    OffsetCommitRequest.OffsetCommitRequestTopic
    | TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
)
BROKERS_RETENTION = -1
Place = tuple[str, int]
CommitResults = dict[str, list[tuple[int, ErrorCode]]]
"""The error of each partition, by topic."""


class CheckedCommits:
    """The offsets of one request. The coordinator stores the `storable` ones and never receives
    the `rejected` ones. It checks the group first, then the size
    (`GroupMetadataManager.storeOffsets`).

    Of a repeated partition the last entry counts. Offsets expire after `retention_ms` (OffsetCommit
    2 to 4), or by the broker's settings.
    """

    def __init__(
        self,
        broker: BrokerParts,
        context: RequestContext,
        topics: Sequence[Topic],
        retention_ms: int = BROKERS_RETENTION,
    ) -> None:
        names = [topic.name for topic in topics]
        allowed = allowed_names(broker, context, Operation.READ, ResourceType.TOPIC, names)
        self.rejected: CommitResults = {}
        self.permitted: dict[Place, OffsetCommitValue] = {}
        self._max_bytes = broker.config.offset_metadata_max_bytes
        self._now_ms = broker.clock.now_ms()
        self._expires_ms = NO_TIMESTAMP
        if retention_ms != BROKERS_RETENTION:
            self._expires_ms = _as_long(self._now_ms + retention_ms)
        for topic in topics:
            if topic.name not in allowed:
                self._reject(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif topic.name not in broker.metadata.topics:
                self._reject(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                self._permit(broker, topic)

    def _reject(self, topic: Topic, error: ErrorCode) -> None:
        errors = self.rejected.setdefault(topic.name, [])
        errors.extend((partition.partition_index, error) for partition in topic.partitions)

    def _permit(self, broker: BrokerParts, topic: Topic) -> None:
        for partition in topic.partitions:
            place = (topic.name, partition.partition_index)
            if broker.metadata.partition(*place) is None:
                answer = (partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                self.rejected.setdefault(topic.name, []).append(answer)
                continue
            given = getattr(
                partition, "commit_timestamp", NO_TIMESTAMP
            )  # OffsetCommit 1 alone has it
            self.permitted[place] = OffsetCommitValue(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=partition.committed_metadata or "",
                commit_timestamp=self._now_ms if given == NO_TIMESTAMP else given,
                expire_timestamp=self._expires_ms,
            )

    @property
    def storable(self) -> dict[Place, OffsetCommitValue]:
        return {
            place: commit
            for place, commit in self.permitted.items()
            if not self._is_too_large(commit)
        }

    def _is_too_large(self, value: OffsetCommitValue) -> bool:
        return len(value.metadata) > self._max_bytes

    def results(self, error: ErrorCode) -> Iterator[tuple[str, list[tuple[int, ErrorCode]]]]:
        """The errors of all partitions by topic, given the coordinator's error."""
        results = {name: list(answers) for name, answers in self.rejected.items()}
        for (name, index), value in self.permitted.items():
            outcome = error
            if error is ErrorCode.NONE and self._is_too_large(value):
                outcome = ErrorCode.OFFSET_METADATA_TOO_LARGE
            results.setdefault(name, []).append((index, outcome))
        yield from results.items()


def _as_long(number: int) -> int:
    """As an int64 that overflows, as Java's do."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
