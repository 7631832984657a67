"""Broker settings of users (`--set key=value`), checked before anything starts.

Names that the target does not know, or that an option of the command sets, are rejected. The target
itself checks values: it reads a property file with them, as at its start.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from urteil.chaos.similar_names import suggest
from urteil.chaos.topology import LOCALHOST
from urteil.harness.runtimes.process import MachinePrograms
from urteil.harness.standing.state_file import StandingRequest
from urteil.harness.targets import BrokerNode, Target, parse_target
from urteil.harness.targets.mix import kinds_of
from urteil.harness.targets.target import common_properties, render, replication_properties

_LISTENERS = "the lab lays out listeners: --port, --tls and --sasl change them"
_PLANE = "the target decides it: --target kafka:4.4.0 has KRaft, --controllers its nodes"
_USERS = "--tls, --sasl and --acl decide it"
OWNED = {
    "broker.id": "--first-broker-id decides it",
    "node.id": "--first-broker-id decides it",
    "broker.rack": "--racks decides it, a rack a broker",
    "listeners": _LISTENERS,
    "advertised.listeners": _LISTENERS,
    "listener.security.protocol.map": _LISTENERS,
    "inter.broker.listener.name": _LISTENERS,
    "security.inter.broker.protocol": _LISTENERS,
    "log.dir": "the lab decides where its files lie",
    "log.dirs": "the lab decides where its files lie",
    "zookeeper.connect": "the cluster has ZooKeepers of its own: --zookeepers",
    "process.roles": _PLANE,
    "controller.quorum.voters": _PLANE,
    "controller.listener.names": _PLANE,
    "urteil.hosts.file": "the lab decides how names are resolved",
    "urteil.metrics.listener": "--port decides it",
}
"""Settings that users cannot set, each with the alternative."""
OWNED_WHEN_SECURED = {
    "sasl.enabled.mechanisms": _USERS,
    "ssl.principal.mapping.rules": _USERS,
    "authorizer.class.name": _USERS,
    "super.users": _USERS,
}
PASSED_ON = ("super.users", "allow.everyone.if.no.acl.found")
PREFIXES = ("listener.name.", "authorizer.", "metrics.")
"""Prefixes of settings that brokers pass on to plugins, so that no list has them."""


def parse_settings(words: Iterable[str]) -> dict[str, str]:
    """`key=value` words as a mapping. Raises ValueError with the word and the remedy."""
    settings: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or not key:
            raise ValueError(f"--set {word}: write KEY=VALUE")
        if key in settings:
            raise ValueError(f"--set {key} is there twice: {settings[key]!r} and {value!r}")
        if "\n" in word or "\r" in word:
            raise ValueError(f"--set {key}: a value is one line")
        settings[key] = value
    return settings


def settings_problem(request: StandingRequest) -> str:
    """Why brokers would reject the settings. Empty when they would accept them.

    Raises MissingDependency without the target's program.
    """
    owned = OWNED | (OWNED_WHEN_SECURED if request.security else {})
    for key in request.settings:
        if key in owned:
            return f"--set {key} cannot be: {owned[key]}"
    if not request.settings:
        return ""
    kinds = kinds_of(parse_target(request.target), request.brokers)
    for kind in {(kind.name, kind.version): kind for kind in kinds}.values():
        if problem := _problem(kind, request):
            return problem
    return ""


def _problem(kind: Target, request: StandingRequest) -> str:
    with tempfile.TemporaryDirectory() as folder:
        node = _any_node(Path(folder), request.first_broker_id, kind)
        properties = {
            **common_properties(node),
            **replication_properties(request.brokers),
            **kind.properties(node),
        }
        node.properties_file.write_text(render({**properties, **request.settings}))
        node.hosts_file.write_text("")
        check = kind.check(node, MachinePrograms())
    known_settings = set(check.known)
    for key in request.settings:
        if known_settings and not (
            key in known_settings or key in PASSED_ON or key.startswith(PREFIXES)
        ):
            hint = suggest(key, sorted(known_settings), otherwise="")
            refusal = f"--set {key}: {kind.name} {kind.version} has no such setting"
            return f"{refusal}; {hint}" if hint else refusal
    # The file is temporary: its name means nothing to the user.
    refusal = check.refusal.replace(f"{node.properties_file}: ", "")
    if refusal:
        return f"{_blamed_settings(refusal, request.settings)}: {refusal}"
    return ""


def _any_node(home: Path, broker_id: int, kind: Target) -> BrokerNode:
    return BrokerNode(
        name=f"b{broker_id}",
        broker_id=broker_id,
        home=home,
        address=LOCALHOST,
        internal_port=9091,
        client_port=9092,
        for_clients=(LOCALHOST, 9092),
        metrics=(LOCALHOST, 9404),
        zookeeper_connect=f"{LOCALHOST}:2181" if kind.has_zookeeper else "",
        quorum_voters="" if kind.has_zookeeper else f"{broker_id}@{LOCALHOST}:9093",
        controller_port=9093,
    )


def _blamed_settings(refusal: str, settings: Mapping[str, str]) -> str:
    """The settings that the error names, or all of them."""
    blamed = [key for key in settings if key in refusal] or list(settings)
    return " ".join(f"--set {key}={settings[key]}" for key in blamed)
