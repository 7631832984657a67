"""Rates at which new connections are accepted (`ConnectionQuotas`, KIP-612)."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable

from urteil.broker.base.rates import Rate, Windows
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.net.connection import Connection

RATE = "max.connection.creation.rate"
UNLIMITED = 2**31 - 1


class AcceptRates:
    """Accepts the connections of a listener in order, no faster than `max.connection.creation.rate`
    of the broker and of the listener allow.

    A connection above the rate waits unread, for one quota window at most. Up to `backlog`
    connections of a listener may wait; further ones are closed. The broker's rate does not delay
    other brokers.
    """

    def __init__(
        self,
        properties: LiveProperties,
        backlog: int,
        is_broker: Callable[[Connection], bool],
        admit: Callable[[Connection], None],
    ) -> None:
        """`admit` receives each connection that had to wait, when its turn comes."""
        count = properties.value("quota.window.num")
        self._windows = Windows(count, properties.value("quota.window.size.seconds") * 1000)
        self._properties = properties
        self._backlog = backlog
        self._is_broker = is_broker
        self._admit = admit
        self._rates: dict[str, Rate] = defaultdict(lambda: Rate(self._windows))
        self._queues: dict[str, deque[Connection]] = defaultdict(deque)

    def arrive(self, connection: Connection) -> bool:
        """Whether the connection may proceed now. Otherwise it waits or is closed already."""
        queue = self._queues[connection.listener]
        if not queue:
            wait_ms = self._wait_ms(connection)
            if not wait_ms:
                return True
            self._schedule(connection.listener, wait_ms)
        if len(queue) >= self._backlog:
            connection.close()
        else:
            connection.hold()
            queue.append(connection)
        return False

    def leave(self, connection: Connection) -> None:
        queue = self._queues[connection.listener]
        if connection in queue:
            queue.remove(connection)  # if it was the first, it is the turn of the next one

    def _schedule(self, listener: str, wait_ms: float) -> None:
        asyncio.get_running_loop().call_later(wait_ms / 1000, self._next, listener)

    def _next(self, listener: str) -> None:
        """Admit the first waiting connection; those behind it count from now on."""
        queue, wait_ms = self._queues[listener], 0.0
        while queue and not wait_ms:
            self._admit(queue.popleft())
            wait_ms = self._wait_ms(queue[0]) if queue else 0.0
        if wait_ms:
            self._schedule(listener, wait_ms)

    def _wait_ms(self, connection: Connection) -> float:
        """Count the connection; return the wait in ms until the rates are kept again."""
        own = self._properties.get(f"listener.name.{connection.listener.lower()}.{RATE}")
        limits = {} if own is None else {connection.listener: int(own)}
        if not self._is_broker(connection):
            limits[""] = int(self._properties.value(RATE))
        now_ms = asyncio.get_running_loop().time() * 1000
        waits = (self._rate_wait_ms(name, limit, now_ms) for name, limit in limits.items())
        return max(waits, default=0.0)

    def _rate_wait_ms(self, name: str, limit: int, now_ms: float) -> float:
        if limit >= UNLIMITED:
            return 0.0
        rate, longest_ms = self._rates[name], float(self._windows.size_ms)
        rate.record(1, now_ms)
        return min(rate.throttle_ms(limit, now_ms), longest_ms) if limit else longest_ms
