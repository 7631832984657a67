"""`listeners`, `advertised.listeners` and dependent settings, by Kafka's rules and in its words.

A listener is `NAME://HOST:PORT`; `listener.security.protocol.map` has the protocol of its name. A
broker binds all listeners and advertises those of `advertised.listeners`, or all without it
(`CoreUtils.listenerListToEndPoints` and `KafkaConfig.validateValues` of 3.9.1).
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from urteil.broker.config.values import (
    ConfigError,
    comma_parts,
    java_trim,
    parse_int,
    violated_rule,
)

_URI = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_ADDRESS = re.compile(r"^\[?([0-9a-zA-Z\-%._:]+?)\]?:([0-9]{1,5})$")
_HIGHEST_PORT = 65_535
_MAP = "listener.security.protocol.map"
PLAINTEXT = "PLAINTEXT"
PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener: its bind address, its advertised address and its security protocol.

    An empty `host` binds every interface (Kafka's wildcard); an empty `advertised_host` is this
    machine's name.
    """

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    protocol: str
    is_advertised: bool = True

    @property
    def advertised_uri(self) -> str:
        return f"{self.name}://{self.advertised_host}:{self.advertised_port}"


@dataclass(frozen=True, slots=True)
class _Endpoint:
    name: str
    host: str
    port: int
    protocol: str


def parse_listeners(
    values: Mapping[str, Any], properties: Mapping[str, str]
) -> tuple[tuple[Listener, ...], str]:
    """Return all listeners, the advertised ones first and in their order, and the name of the
    inter-broker listener. Raises ConfigError."""
    protocols = security_protocols(values[_MAP])
    bound = _endpoints("listeners", values["listeners"], protocols, distinct_ports=True)
    _check_early(values["early.start.listeners"], bound)
    advertised = bound
    if values["advertised.listeners"] is not None:
        text = values["advertised.listeners"]
        advertised = _endpoints("advertised.listeners", text, protocols, distinct_ports=False)
    _check_alone(values, advertised)
    inter_broker = _inter_broker(values, properties, protocols)
    _check_names(values, bound, advertised, inter_broker, protocols)
    _check_ports(bound)
    return (
        tuple(_listener(bound[endpoint.name], endpoint) for endpoint in advertised.values())
        + tuple(
            _listener(endpoint, None) for name, endpoint in bound.items() if name not in advertised
        )
    ), inter_broker


def parse_metrics_listener(text: str | None) -> tuple[str, int] | None:
    """Return host and port of `urteil.metrics.listener`, or None. Raises ConfigError."""
    if not text:
        return None
    match = _ADDRESS.match(text)
    if match is None or not 1 <= int(match.group(2)) <= _HIGHEST_PORT:
        raise ConfigError(
            f"Invalid value {text} for configuration urteil.metrics.listener: not HOST:PORT"
        )
    return match.group(1), int(match.group(2))


def csv_list(text: str) -> list[str]:
    return [part for part in comma_parts(text) if part]


def csv_map(name: str, text: str) -> dict[str, str]:
    """Parse pairs `KEY:VALUE`, split at the last colon (`Csv.parseCsvMap`). Raises ConfigError."""
    pairs = {}
    for part in comma_parts(text.rstrip(",")) if text.strip(",") else ():
        key, colon, value = part.rpartition(":")
        if not colon:
            raise ConfigError(
                f"Error parsing configuration property '{name}': begin 0, end -1, length "
                f"{len(part)} ({part!r} has no colon: write KEY:VALUE,KEY:VALUE)"
            )
        pairs[java_trim(key)] = java_trim(value)
    return pairs


def security_protocols(text: str) -> dict[str, str]:
    """Return the security protocol of each listener name. Raises ConfigError."""
    pairs = {}
    for name, written in csv_map(_MAP, text or "").items():
        if not name:
            raise ConfigError(f"The provided listener name is null or empty string ({_MAP}={text})")
        protocol = written.upper()
        if protocol not in PROTOCOLS:
            raise ConfigError(
                f"Invalid security protocol `{written}` defined in {_MAP} (write one of "
                f"{', '.join(PROTOCOLS)})"
            )
        pairs[name.upper()] = protocol
    return pairs


def _endpoints(
    key: str, text: str, protocols: Mapping[str, str], *, distinct_ports: bool
) -> dict[str, _Endpoint]:
    """The endpoints by name, in their order."""
    endpoints = [_endpoint(key, text, part, protocols) for part in csv_list(text)]
    if len({endpoint.name for endpoint in endpoints}) < len(endpoints):
        raise violated_rule(f"Each listener must have a different name, listeners: {text} ({key})")
    if distinct_ports:
        _check_distinct(text, endpoints)
    return {endpoint.name: endpoint for endpoint in endpoints}


def _endpoint(key: str, text: str, part: str, protocols: Mapping[str, str]) -> _Endpoint:
    wrong = f"Error creating broker listeners from '{text}': "
    match = _URI.fullmatch(part)
    if match is None:
        raise ConfigError(
            f"{wrong}Unable to parse {part} to a broker endpoint ({key}: write NAME://HOST:PORT)"
        )
    name, host, port = match.group(1).upper(), match.group(2), parse_int(match.group(3))
    if not name.strip():
        raise ConfigError(f"{wrong}The provided listener name is null or empty string ({key})")
    if port is None:
        raise ConfigError(f'{wrong}For input string: "{match.group(3)}" ({key}: no port)')
    if name not in protocols:
        raise ConfigError(
            f"{wrong}No security protocol defined for listener {name} ({key}: name one in {_MAP})"
        )
    return _Endpoint(name, host, port, protocols[name])


def _check_distinct(text: str, endpoints: Iterable[_Endpoint]) -> None:
    """Check that each port has one listener, or one IPv4 and one IPv6 address (KIP-797)."""
    by_port = defaultdict(list)
    for endpoint in endpoints:
        if endpoint.port != 0:
            by_port[endpoint.port].append(endpoint)
    for port, same in by_port.items():
        if len(same) < 2:
            continue
        families = Counter(_family(listener.host) for listener in same)
        named = families.pop(None, 0)
        numeric = families.total()
        if named > 1:
            raise violated_rule(f"Each listener must have a different port, listeners: {text}")
        if numeric == 2 and (named or max(families.values()) == 2):
            raise violated_rule(
                "If you have two listeners on the same port then one needs to be IPv4 and the "
                f"other IPv6, listeners: {text}, port: {port}"
            )
        if numeric != 0 and numeric != 2:
            raise ConfigError(
                "Each listener must have a different port unless exactly one listener has an IPv4 "
                f"address and the other IPv6 address, listeners: {text}, port: {port}"
            )


def _family(host: str) -> int | None:
    """4 or 6 for an address, None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).version
    except ValueError:
        return None


def _check_early(text: str | None, bound: Mapping[str, _Endpoint]) -> None:
    for name in filter(None, map(java_trim, (text or "").split(","))):
        if name not in bound:
            raise ConfigError(
                f"early.start.listeners contains listener {name}, but this is not contained in "
                "listeners or controller.listener.names"
            )


def _inter_broker(
    values: Mapping[str, Any], properties: Mapping[str, str], protocols: Mapping[str, str]
) -> str:
    name = values["inter.broker.listener.name"]
    if name is None:
        return str(values["security.inter.broker.protocol"])
    if "security.inter.broker.protocol" in properties:
        raise ConfigError(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be "
            "set."
        )
    _check_mapped("with name ", "inter.broker.listener.name", name, protocols)
    return str(name).upper()


def _check_mapped(of: str, key: str, name: str, protocols: Mapping[str, str]) -> None:
    if not name:
        raise ConfigError(f"The provided listener name is null or empty string ({key})")
    if name.upper() not in protocols:
        raise ConfigError(f"Listener {of}{name.upper()} defined in {key} not found in {_MAP}.")


def _check_alone(values: Mapping[str, Any], advertised: Mapping[str, _Endpoint]) -> None:
    if values["controller.listener.names"]:
        raise violated_rule(
            "controller.listener.names must be empty when not running in KRaft mode: "
            f"[{', '.join(values['controller.listener.names'].split(','))}]"
        )
    if not advertised:
        raise violated_rule("There must be at least one broker advertised listener.")


def _check_names(
    values: Mapping[str, Any],
    bound: Mapping[str, _Endpoint],
    advertised: Mapping[str, _Endpoint],
    inter_broker: str,
    protocols: Mapping[str, str],
) -> None:
    options = (
        "must be a listener name defined in advertised.listeners. The valid options based on "
        f"currently configured listeners are {','.join(advertised)}"
    )
    if inter_broker not in advertised:
        raise violated_rule(f"inter.broker.listener.name {options} (it is {inter_broker})")
    if not advertised.keys() <= bound.keys():
        raise violated_rule(
            "advertised.listeners listener names must be equal to or a subset of the ones defined "
            f"in listeners. Found {','.join(advertised)}. The valid options based on the current "
            f"configuration are {','.join(bound)}"
        )
    for endpoint in advertised.values():
        if endpoint.host == "0.0.0.0":
            raise violated_rule(
                "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a "
                f"routable IP address. (That of {endpoint.name}; without advertised.listeners, "
                "listeners are advertised)"
            )
    control = values["control.plane.listener.name"]
    if control is None:
        return
    _check_mapped("with ", "control.plane.listener.name", control, protocols)
    if control.upper() not in advertised:
        raise violated_rule(f"control.plane.listener.name {options} (it is {control.upper()})")
    if control.upper() == inter_broker:
        raise violated_rule(
            "control.plane.listener.name, when defined, should have a different value from the "
            "inter broker listener name. Currently they both have the value "
            f"ListenerName({inter_broker})"
        )


def _check_ports(bound: Mapping[str, _Endpoint]) -> None:
    """Check for equal ports. Apache Kafka fails when it binds them."""
    for endpoint in bound.values():
        if not 0 <= endpoint.port <= _HIGHEST_PORT:
            raise ConfigError(
                f"Invalid value {endpoint.name}://{endpoint.host}:{endpoint.port} "
                f"for configuration listeners: port out of range, 0 to {_HIGHEST_PORT}"
            )


def _listener(bound: _Endpoint, advertised: _Endpoint | None) -> Listener:
    shown = advertised or bound
    return Listener(
        bound.name,
        bound.host,
        bound.port,
        shown.host,
        shown.port,
        bound.protocol,
        advertised is not None,
    )
