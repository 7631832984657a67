"""Fixes for eight faults of kafka-python 3.0 that chaos triggers, applied to the instance in use.

No fix changes the requests of a client. Without them, one outage would end a client's load.
"""

from __future__ import annotations

from typing import Any

from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.errors import (
    CorruptRecordError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    UnknownBrokerIdError,
)
from kafka.producer.transaction_manager import TransactionState


def renew_producer_ids(producer: Any) -> None:
    """Let an idempotent producer request a new id after it gave up the old one.

    When a sent batch expires, `reset_producer_id` drops the id but keeps the state READY, and
    `init_producer_id` acts only in UNINITIALIZED: the producer never sends again. (The Java client
    had the same bug: KAFKA-7737.)
    """
    manager = producer._transaction_manager
    if manager is None:
        return
    reset = manager.reset_producer_id

    def reset_and_renew() -> None:
        with manager._lock:
            reset()
            if manager._current_state == TransactionState.READY:
                manager._current_state = TransactionState.UNINITIALIZED

    manager.reset_producer_id = reset_and_renew


def fix_connections(manager: Any) -> None:
    """Apply the fixes of connections to a client's connection manager."""
    back_off(manager)
    limit_connection_setup(manager)


def limit_connection_setup(manager: Any) -> None:
    """Give up a connection that is not ready within `request_timeout_ms`.

    The library's limit, which is not a setting of its clients, is 10 s and doubles up to 30 s. A
    metadata request goes to any broker. One that is cut off behind a proxy accepts the connection
    and stays silent, so the client did not find a new leader for as long.
    """
    for name in ("socket_connection_setup_timeout_ms", "socket_connection_setup_timeout_max_ms"):
        manager.config[name] = manager.config["request_timeout_ms"]


def back_off(manager: Any) -> None:
    """Wait between connections to a node that accepts and closes them, like a proxy of a dead
    broker.

    The manager counts an accepted connection as success before ApiVersions was answered, and
    connects hundreds of times a second.
    """
    connect = manager._connect

    async def connect_and_back_off(
        node: Any, conn: Any, reset_backoff_on_connect: bool = True, timeout_at: Any = None
    ) -> None:
        await connect(node, conn, reset_backoff_on_connect=False, timeout_at=timeout_at)
        if not conn.connected:
            manager.update_backoff(node.node_id)
        elif reset_backoff_on_connect:
            manager.reset_backoff(node.node_id)

    manager._connect = connect_and_back_off


def refresh_unknown_leader(manager: Any) -> None:
    """Request metadata again if a leader is not among the brokers.

    One response can have both: Apache Kafka 3.9 reads leaders and brokers from two snapshots, and
    an update may come in between. The producer's thread then fails in a tight loop and sends
    nothing until the next refresh, up to five minutes later.
    """
    get_connection = manager.get_connection

    def get_or_refresh(node_id: Any, **more: Any) -> Any:
        try:
            return get_connection(node_id, **more)
        except UnknownBrokerIdError:
            manager.cluster.request_update()
            raise NodeNotReadyError(node_id) from None

    manager.get_connection = get_or_refresh


def retry_missing_partitions(fetcher: Any) -> None:
    """Treat a ListOffsets response without a requested partition as retriable.

    A broker omits a partition that it does not know yet, and the fetcher raises a KeyError for it.
    """
    request = fetcher.beginning_or_end_offset

    def request_or_raise(*given: Any, **more: Any) -> Any:
        try:
            return request(*given, **more)
        except KeyError as lacking:
            raise LeaderNotAvailableError(f"no response has the offset of {lacking}") from None

    fetcher.beginning_or_end_offset = request_or_raise


def drop_corrupt_response(fetcher: Any) -> None:
    """Drop a fetch response with a corrupt batch, so that it is fetched again.

    Otherwise the fetcher reads from an exhausted generator without end, and `poll` never returns.
    The error's arguments are the partition and the offset of the batch.
    """
    append = fetcher._append

    def append_or_drop(drained: Any, part: Any, *more: Any) -> int:
        try:
            return int(append(drained, part, *more))
        except CorruptRecordError as damaged:
            damaged.args = (part.topic_partition, part.next_fetch_offset)
            part.drain()
            raise

    fetcher._append = append_or_drop


def finish_joining(coordinator: Any) -> None:
    """Continue a join in progress even if its reason has gone.

    A leader that rejoins because a topic's partitions changed notes the new partitions before its
    SyncGroup response. If its poll ends in between, no code continues the join: the member has no
    assignment and sends no heartbeats, forever.
    """
    needed = coordinator.need_rejoin
    coordinator.need_rejoin = lambda: coordinator._join_task is not None or needed()


def forget_lost_positions(coordinator: Any) -> None:
    """Fetch the committed offset of a partition that other members may have owned meanwhile.

    An eager member keeps its positions while it joins. If its JoinGroup gets no answer, the group
    goes on without it, and its next assignment may have the same partition: it then reads on from
    its old position, below offsets that others have committed.
    """
    complete = coordinator._on_join_complete_async
    joined: list[int] = []

    async def complete_or_forget(generation: int, *given: Any, **more: Any) -> Any:
        is_eager = coordinator._rebalance_protocol == RebalanceProtocol.EAGER
        if is_eager and joined and generation != joined[-1] + 1:
            coordinator._subscription.assign_from_subscribed([])
        joined[:] = [generation]
        return await complete(generation, *given, **more)

    coordinator._on_join_complete_async = complete_or_forget
