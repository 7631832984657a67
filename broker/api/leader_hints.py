"""Hints at the current leader, in errors of Produce from 10 and Fetch from 16 on (KIP-951)."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext
from urteil.broker.net.channels import Endpoint
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchResponse, ProduceResponse

_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class _Hints:
    def __init__(self, broker: BrokerParts, context: RequestContext, since_version: int) -> None:
        self._broker = broker
        self._context = context
        self._is_supported = context.version >= since_version
        self._leaders: set[int] = set()

    def find(self, topic: str, partition: int, error: ErrorCode) -> tuple[int, int]:
        """The leader and epoch from the newest source here; (-1, -1) without a hint."""
        if not self._is_supported or error not in _MOVED:
            return -1, -1
        hosted = self._broker.replicas.partition(topic, partition)
        known = self._broker.metadata.partition(topic, partition)
        leader, epoch = (hosted.leader_id, hosted.leader_epoch) if hosted else (-1, -1)
        if known is not None and known.leader_epoch >= epoch:
            leader, epoch = known.leader, known.leader_epoch
        if leader >= 0:
            self._leaders.add(leader)
        return leader, epoch

    def endpoints(self) -> list[tuple[Endpoint, str | None]]:
        leaders = []
        for leader in sorted(self._leaders):
            endpoint = self._broker.metadata.endpoint(leader, self._context.listener)
            if endpoint is not None:
                leaders.append((endpoint, self._broker.metadata.brokers[leader].rack))
        return leaders


class ProduceHints(_Hints):
    """Hints in the shape of ProduceResponse."""

    def __init__(self, broker: BrokerParts, context: RequestContext) -> None:
        super().__init__(broker, context, since_version=10)

    def leader(
        self, topic: str, partition: int, error: ErrorCode
    ) -> ProduceResponse.LeaderIdAndEpoch:
        leader, epoch = self.find(topic, partition, error)
        return ProduceResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)

    def nodes(self) -> Sequence[ProduceResponse.NodeEndpoint]:
        return [
            ProduceResponse.NodeEndpoint(
                node_id=endpoint.id, host=endpoint.host, port=endpoint.port, rack=rack
            )
            for endpoint, rack in self.endpoints()
        ]


class FetchHints(_Hints):
    """Hints in the shape of FetchResponse."""

    def __init__(self, broker: BrokerParts, context: RequestContext) -> None:
        super().__init__(broker, context, since_version=16)

    def leader(
        self, topic: str, partition: int, error: ErrorCode
    ) -> FetchResponse.LeaderIdAndEpoch:
        leader, epoch = self.find(topic, partition, error)
        return FetchResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)

    def nodes(self) -> Sequence[FetchResponse.NodeEndpoint]:
        return [
            FetchResponse.NodeEndpoint(
                node_id=endpoint.id, host=endpoint.host, port=endpoint.port, rack=rack
            )
            for endpoint, rack in self.endpoints()
        ]
