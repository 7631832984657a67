"""Charges of requests to the quotas of their user and client id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from urteil.broker.api.registry import RequestContext
from urteil.broker.controller.mutation_quota import Mutations
from urteil.broker.quotas.quota_table import Quota
from urteil.broker.quotas.throttle import Throttle
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import FetchRequest

if TYPE_CHECKING:
    from urteil.broker.api.broker_parts import BrokerParts

FREE = frozenset(
    (
        ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN, ApiKey.WRITE_TXN_MARKERS, ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE,
    )
)  # fmt: skip


def mutation_quota(broker: BrokerParts, context: RequestContext, *, strict_from: int) -> Mutations:
    """The controller mutation quota of a request."""
    is_strict = context.version >= strict_from
    return Mutations(broker.throttle, *_client(context), is_strict=is_strict)


def fetch_wait_ms(broker: BrokerParts, context: RequestContext, size_bytes: int) -> int:
    """The throttle time of a response of this size, which is not sent then; 0 to send it now."""
    throttle = broker.throttle
    if not throttle.is_limited(Quota.FETCH):
        return 0
    client = _client(context)
    wait_ms = throttle.spend(Quota.FETCH, *client, size_bytes)
    if wait_ms:
        throttle.take_back(Quota.FETCH, *client, size_bytes)
    return wait_ms


def fetch_at_once(broker: BrokerParts, context: RequestContext, max_bytes: int) -> int:
    """`max_bytes`, limited to what the quota permits without throttling."""
    if not broker.throttle.is_limited(Quota.FETCH):
        return max_bytes
    most = broker.throttle.at_once(*_client(context))
    return max_bytes if most is None else min(max_bytes, int(most))


def wait_of(
    throttle: Throttle, context: RequestContext, body: Any, size_bytes: int, spent_s: float
) -> int:
    """The throttle time of a request, for its records and its processing time. Requests between
    brokers are free, and so is the time of requests without a response."""
    key, client = context.header.api_key, _client(context)
    wait_ms = 0
    if key in FREE or (key == ApiKey.FETCH and _is_follower(body)):
        return 0
    if key == ApiKey.PRODUCE and throttle.is_limited(Quota.PRODUCE):
        wait_ms = throttle.spend(Quota.PRODUCE, *client, size_bytes)
    if throttle.is_limited(Quota.REQUEST) and not (key == ApiKey.PRODUCE and body.acks == 0):
        wait_ms = max(wait_ms, throttle.spend(Quota.REQUEST, *client, spent_s * 100))
    return wait_ms


def _is_follower(request: FetchRequest) -> bool:
    return max(request.replica_id, request.replica_state.replica_id) >= 0


def _client(context: RequestContext) -> tuple[str, str]:
    return context.principal.name, context.header.client_id or ""
