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
            listener=one.name,
            protocol=one.protocol,
            host=one.advertised_host or own_name(),
            port=one.advertised_port or bound_port(one.name),
        )
        for one in listeners
        if one.is_advertised
    )


def advertised_addresses(listeners: Iterable[Listener]) -> tuple[str, ...]:
    """Return HOST:PORT of each advertised listener that names both."""
    return tuple(
        f"{one.advertised_host}:{one.advertised_port}"
        for one in listeners
        if one.is_advertised and one.advertised_host and one.advertised_port
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
