"""Six faults of kafka-python 3.0 that chaos runs into, mended on the instance in use.

None changes what a client asks of a broker; unmended, one outage would end a client's load.
"""

from __future__ import annotations

from typing import Any

from kafka.errors import (
    CorruptRecordError,
    LeaderNotAvailableError,
    NodeNotReadyError,
    UnknownBrokerIdError,
)
from kafka.producer.transaction_manager import TransactionState


def renew_producer_ids(producer: Any) -> None:
    """Let an idempotent producer ask for a new id after it gave up the old one.

    When a batch that had been sent expires, `reset_producer_id` drops the id but stays READY, and
    `init_producer_id` acts on UNINITIALIZED only: nothing is ever sent again. (The Java client
    had to change the state there too: KAFKA-7737.)
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


def back_off(manager: Any) -> None:
    """Wait between connections to a node that accepts and closes, as a proxy of a dead broker does.

    The manager takes an accepted connection for success before ApiVersions was answered, and so
    connects hundreds of times a second.
    """
    connect = manager._connect

    async def connect_and_judge(
        node: Any, conn: Any, reset_backoff_on_connect: bool = True, timeout_at: Any = None
    ) -> None:
        await connect(node, conn, reset_backoff_on_connect=False, timeout_at=timeout_at)
        if not conn.connected:
            manager.update_backoff(node.node_id)
        elif reset_backoff_on_connect:
            manager.reset_backoff(node.node_id)

    manager._connect = connect_and_judge


def look_again(manager: Any) -> None:
    """Ask for metadata again when a leader is none of the brokers.

    One answer can say both: Apache Kafka 3.9 takes the leaders and the brokers from two snapshots,
    and a controller's word may come in between. The producer's thread then fails in a tight loop,
    and sends nothing until the next refresh in five minutes.
    """
    get_connection = manager.get_connection

    def get_or_ask(node_id: Any, **more: Any) -> Any:
        try:
            return get_connection(node_id, **more)
        except UnknownBrokerIdError:
            manager.cluster.request_update()
            raise NodeNotReadyError(node_id) from None

    manager.get_connection = get_or_ask


def ask_for_all(fetcher: Any) -> None:
    """Take an answer about offsets that lacks a partition for one to be asked again.

    A broker that does not know a partition yet is passed over, and the fetcher then raises a
    KeyError for it.
    """
    ask = fetcher.beginning_or_end_offset

    def ask_or_say_so(*given: Any, **more: Any) -> Any:
        try:
            return ask(*given, **more)
        except KeyError as lacking:
            raise LeaderNotAvailableError(f"nobody tells where {lacking} lies") from None

    fetcher.beginning_or_end_offset = ask_or_say_so


def fetch_again(fetcher: Any) -> None:
    """Let go of an answer that holds a damaged batch, so that it is asked for again.

    The fetcher takes records from a spent generator then, without an end: its poll never returns.
    The error's arguments are the partition and the offset that it could not go beyond.
    """
    append = fetcher._append

    def append_or_let_go(drained: Any, part: Any, *more: Any) -> int:
        try:
            return int(append(drained, part, *more))
        except CorruptRecordError as damaged:
            damaged.args = (part.topic_partition, part.next_fetch_offset)
            part.drain()
            raise

    fetcher._append = append_or_let_go


def finish_joining(coordinator: Any) -> None:
    """Go on with a join that is under way, though what made it needed is over.

    A leader that joins again because a topic's partitions changed takes note of the new ones
    before its SyncGroup is answered. Nobody looks after the join any more if its poll ends in
    between: the member has no assignment and sends no heartbeats, for good.
    """
    needed = coordinator.need_rejoin
    coordinator.need_rejoin = lambda: coordinator._join_task is not None or needed()
