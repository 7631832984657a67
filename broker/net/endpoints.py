"""The endpoints that a broker registers, once its sockets are bound."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable

from urteil.broker.config.listeners import Listener
from urteil.broker.config.values import ConfigError
from urteil.broker.zookeeper.znodes import BrokerEndpoint


def endpoints(
    listeners: Iterable[Listener], bound_port: Callable[[str], int]
) -> tuple[BrokerEndpoint, ...]:
    """Return the advertised endpoints. Port 0 becomes the bound port, and an empty host this
    machine's name. Raises ConfigError if the machine has no name."""
    return tuple(
        BrokerEndpoint(
            listener=listener.name,
            protocol=listener.protocol,
            host=listener.advertised_host or own_name(),
            port=listener.advertised_port or bound_port(listener.name),
        )
        for listener in listeners
        if listener.is_advertised
    )


def advertised_addresses(listeners: Iterable[Listener]) -> tuple[str, ...]:
    """Return HOST:PORT of each advertised listener that names both."""
    return tuple(
        f"{listener.advertised_host}:{listener.advertised_port}"
        for listener in listeners
        if listener.is_advertised and listener.advertised_host and listener.advertised_port
    )


def own_name() -> str:
    """Return this machine's name, as `InetAddress.getLocalHost().getCanonicalHostName()` does."""
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError as error:
        raise ConfigError(
            f"this machine's name, {name}, has no address ({error}): name a host in "
            "advertised.listeners"
        ) from None
    try:
        return socket.gethostbyaddr(address)[0]
    except OSError:
        return address
