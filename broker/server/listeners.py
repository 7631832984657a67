"""`listeners`, `advertised.listeners` and what hangs on them, by Kafka's rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from urteil.broker.server.config_values import ConfigError

_URI = re.compile(r"^([A-Za-z0-9_.-]+)://\[?([0-9a-zA-Z\-%._:]*?)\]?:(-?[0-9]+)$")
_ADDRESS = re.compile(r"^\[?([0-9a-zA-Z\-%._:]+?)\]?:([0-9]{1,5})$")
_HIGHEST_PORT = 65_535
PLAINTEXT = "PLAINTEXT"
_SERVED_PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener: where it binds, what it tells clients, and its security protocol.

    An empty `host` binds every interface (Kafka's wildcard).
    """

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    protocol: str

    @property
    def advertised_uri(self) -> str:
        return f"{self.name}://{self.advertised_host}:{self.advertised_port}"


def parse_listeners(values: Mapping[str, Any]) -> tuple[tuple[Listener, ...], str]:
    """All listeners and the name of the inter-broker one. Raises ConfigError."""
    bound = _uris("listeners", values["listeners"])
    advertised = _uris("advertised.listeners", values["advertised.listeners"] or "")
    if unknown := sorted(set(advertised) - set(bound)):
        raise ConfigError(
            f"Invalid value {unknown[0]} for configuration advertised.listeners: "
            "advertised, but not among listeners"
        )
    protocols = _protocols(values["listener.security.protocol.map"] or "")
    listeners = tuple(
        _listener(name, bound[name], advertised.get(name, bound[name]), protocols)
        for name in bound
        if name in advertised or not advertised
    )
    return listeners, _inter_broker(values, listeners)


def parse_metrics_listener(text: str | None) -> tuple[str, int] | None:
    """Host and port of `urteil.metrics.listener`, None when it is not set. Raises ConfigError."""
    if not text:
        return None
    match = _ADDRESS.match(text)
    if match is None or not 1 <= int(match.group(2)) <= _HIGHEST_PORT:
        raise ConfigError(
            f"Invalid value {text} for configuration urteil.metrics.listener: not HOST:PORT"
        )
    return match.group(1), int(match.group(2))


def _listener(
    name: str, bound: tuple[str, int], advertised: tuple[str, int], protocols: Mapping[str, str]
) -> Listener:
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(f"No security protocol defined for listener {name}")
    if protocol not in _SERVED_PROTOCOLS:
        raise ConfigError(
            f"Invalid value {name}:{protocol} for configuration "
            f"listener.security.protocol.map: this broker speaks {', '.join(_SERVED_PROTOCOLS)}"
        )
    host, port = advertised
    if host == "0.0.0.0":
        raise ConfigError(
            "Invalid value 0.0.0.0 for configuration advertised.listeners: "
            "cannot use the nonroutable meta-address, use advertised.listeners"
        )
    return Listener(name, bound[0], bound[1], host or "localhost", port, protocol)


def _inter_broker(values: Mapping[str, Any], listeners: tuple[Listener, ...]) -> str:
    name = (values["inter.broker.listener.name"] or "").upper()
    if name:
        wanted = [one for one in listeners if one.name == name]
    else:
        protocol = values["security.inter.broker.protocol"]
        wanted = [one for one in listeners if one.protocol == protocol]
    if not wanted:
        raise ConfigError(
            f"Invalid value {name or values['security.inter.broker.protocol']} for configuration "
            "inter.broker.listener.name: no advertised listener of that name"
        )
    return wanted[0].name


def _uris(key: str, text: str) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for part in (piece.strip() for piece in text.split(",")):
        if not part:
            continue
        match = _URI.match(part)
        if match is None:
            raise ConfigError(f"Invalid value {part} for configuration {key}: not NAME://HOST:PORT")
        name, host, port = match.group(1).upper(), match.group(2), int(match.group(3))
        if name in found:
            raise ConfigError(f"Invalid value {text} for configuration {key}: {name} twice")
        found[name] = (host, port)
    if not found and key == "listeners":
        raise ConfigError(f"Invalid value {text} for configuration {key}: at least one needed")
    return found


def _protocols(text: str) -> dict[str, str]:
    pairs = {}
    for part in (piece.strip() for piece in text.split(",")):
        if not part:
            continue
        name, colon, protocol = part.rpartition(":")
        if not colon:
            raise ConfigError(
                f"Invalid value {text} for configuration listener.security.protocol.map: "
                "not NAME:PROTOCOL"
            )
        pairs[name.strip().upper()] = protocol.strip().upper()
    return pairs
