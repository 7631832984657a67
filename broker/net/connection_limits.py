"""Limits on the number of connections (`ConnectionQuotas`, KIP-402, KIP-612)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.net.accept_rates import AcceptRates
from urteil.broker.net.connection import Connection

log = logging.getLogger("sockets")

_OF_ALL = "max.connections"
_OF_HOST = "max.connections.per.ip"
_BY_HOST = "max.connections.per.ip.overrides"


class ConnectionLimits:
    """Closes connections above `max.connections.per.ip`. Connections above `max.connections` of the
    broker or the listener wait unread until another one closes; up to `backlog` of a listener may
    wait, further ones are closed.

    Connections above a rate wait as well (`AcceptRates`). An address above its own rate is closed
    after a while, unserved.

    Connections of other brokers do not wait for the broker's limit: the client that was idle
    longest is closed instead. Limits are read for each connection, so they may change while the
    broker runs.
    """

    def __init__(
        self,
        properties: LiveProperties,
        inter_broker: str,
        backlog: int,
        connect: Callable[[str], int] = lambda _: 0,
    ) -> None:
        """`connect` counts a connection of an address and returns its wait in ms."""
        self._connect = connect
        self._rates = AcceptRates(properties, backlog, self._is_broker, self._admit)
        self._properties = properties
        self._inter_broker = inter_broker
        self._backlog = backlog
        self._served: dict[Connection, None] = {}
        self._by_listener: Counter[str] = Counter()
        self._by_host: Counter[str] = Counter()
        self._waiting: deque[Connection] = deque()
        self._warned: set[str] = set()
        properties.subscribe(lambda _: self._admit_waiting())

    def arrive(self, connection: Connection) -> bool:
        """Whether the connection is served now. Otherwise it waits or is closed already."""
        return self._rates.arrive(connection) and self._may_enter(connection)

    def _admit(self, connection: Connection) -> None:
        """Serve a connection after its wait."""
        if self._may_enter(connection):
            connection.serve_held()

    def _may_enter(self, connection: Connection) -> bool:
        if self._has_place(connection):
            return self._enter(connection)
        waiting = sum(other.listener == connection.listener for other in self._waiting)
        if waiting >= self._backlog:
            connection.close()
        else:
            connection.hold()
            self._waiting.append(connection)
        return False

    def leave(self, connection: Connection) -> None:
        if connection in self._served:
            del self._served[connection]
            self._by_listener[connection.listener] -= 1
            self._by_host[connection.peer_host] -= 1
            if not self._by_host[connection.peer_host]:
                del self._by_host[connection.peer_host]
            self._admit_waiting()
        elif connection in self._waiting:
            self._waiting.remove(connection)
        else:
            self._rates.leave(connection)

    def _enter(self, connection: Connection) -> bool:
        host = connection.peer_host
        wait_ms = self._connect(host)
        if wait_ms:
            connection.hold()
            asyncio.get_running_loop().call_later(wait_ms / 1000, connection.close)
            return False
        if self._by_host[host] >= self._limit_of(host):
            self._warn(host)
            connection.close()
            return False
        self._served[connection] = None
        self._by_listener[connection.listener] += 1
        self._by_host[host] += 1
        if len(self._served) > self._limit(_OF_ALL):
            self._make_room()
        return True

    def _has_place(self, connection: Connection) -> bool:
        of_listener = f"listener.name.{connection.listener.lower()}.{_OF_ALL}"
        own = self._properties.get(of_listener)
        if own is not None and self._by_listener[connection.listener] >= int(own):
            return False
        return self._is_broker(connection) or len(self._served) < self._limit(_OF_ALL)

    def _is_broker(self, connection: Connection) -> bool:
        return connection.listener == self._inter_broker and len(self._by_listener) > 1

    def _make_room(self) -> None:
        idle = (
            candidate
            for candidate in self._served
            if not self._is_broker(candidate) and not candidate.busy
        )
        victim = min(idle, key=lambda candidate: candidate.last_active_s, default=None)
        if victim is not None:
            victim.close()

    def _admit_waiting(self) -> None:
        """Serve the waiting connections for which there is a place now."""
        for connection in list(self._waiting):
            if self._has_place(connection):
                self._waiting.remove(connection)
                if self._enter(connection):
                    connection.serve_held()

    def _limit(self, name: str) -> int:
        return int(self._properties.value(name))

    def _limit_of(self, host: str) -> int:
        overrides = self._properties.get(_BY_HOST)
        own = parse_overrides(overrides).get(host) if overrides else None
        return self._limit(_OF_HOST) if own is None else own

    def _warn(self, host: str) -> None:
        if (
            host not in self._warned
        ):  # once for each address, so that a flood of connections does not flood the log
            self._warned.add(host)
            log.warning("%s has max.connections.per.ip connections: more are closed", host)

    def set_listeners(self, listeners: Iterable[str]) -> None:
        """Set the listeners. A single listener reserves no place for brokers."""
        for name in listeners:
            self._by_listener[name] += 0


def parse_overrides(text: str) -> Mapping[str, int]:
    """Parse `host:count,...`, which the settings have validated."""
    pairs = (part.strip().rpartition(":") for part in text.split(",") if part.strip())
    return {host: int(count) for host, _, count in pairs}
