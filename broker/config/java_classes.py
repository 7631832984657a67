"""Java classes and features that property files name.

This broker loads no Java. It accepts the name of a class whose work it does itself, or whose work
no client can observe. It rejects every other class, because the operator relies on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from urteil.broker.config.values import ConfigError, ConfigKey, known_keys

_COMMON = "org.apache.kafka.common"
_OAUTH = f"{_COMMON}.security.oauthbearer"
_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor"

RACK_AWARE = f"{_COMMON}.replica.RackAwareReplicaSelector"
SELECTORS = (RACK_AWARE, f"{_COMMON}.replica.LeaderSelector")
AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
JMX = f"{_COMMON}.metrics.JmxReporter"

_UNSECURED_LOGIN = f"{_OAUTH}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
_HANDLERS = tuple(
    f"{_OAUTH}{package}.{name}"
    for package, name in (
        ("", "OAuthBearerValidatorCallbackHandler"),
        (".secured", "OAuthBearerValidatorCallbackHandler"),
        (".internals.unsecured", "OAuthBearerUnsecuredValidatorCallbackHandler"),
    )
)

CLASSES: Mapping[str, tuple[str, ...]] = {
    "alter.config.policy.class.name": (),
    "authorizer.class.name": ("", AUTHORIZER),
    "client.quota.callback.class": (),
    "create.topic.policy.class.name": (),
    "group.consumer.assignors": (f"{_ASSIGNORS}.UniformAssignor", f"{_ASSIGNORS}.RangeAssignor"),
    "kafka.metrics.reporters": ("",),
    "metric.reporters": (JMX,),
    "principal.builder.class": (f"{_COMMON}.security.authenticator.DefaultKafkaPrincipalBuilder",),
    "replica.selector.class": SELECTORS,
    "sasl.client.callback.handler.class": (),
    "sasl.login.callback.handler.class": (_UNSECURED_LOGIN,),
    "sasl.login.class": (),
    "sasl.server.callback.handler.class": _HANDLERS,
    "security.providers": ("",),
    "ssl.engine.factory.class": (f"{_COMMON}.security.ssl.DefaultSslEngineFactory",),
    "zookeeper.clientCnxnSocket": (
        "org.apache.zookeeper.ClientCnxnSocketNIO",
        "org.apache.zookeeper.ClientCnxnSocketNetty",
    ),
}
"""The class names that each setting may have; an empty text names none."""

_FEATURES = {
    "process.roles": "this broker serves ZooKeeper mode alone, and no KRaft: remove it",
    "remote.log.storage.system.enable": "this broker has no tiered storage: remove it",
    "zookeeper.metadata.migration.enable": "this broker cannot migrate to KRaft: remove it",
    "zookeeper.set.acl": "this broker has no credentials for ZooKeeper, and would leave open what "
    "the setting is to close",
    "zookeeper.ssl.client.enable": "this broker has no TLS to ZooKeeper, and would leave open what "
    "the setting is to close",
}


def check_classes(properties: Mapping[str, str], listeners: Iterable[str]) -> None:
    """Check the classes of the broker and of each listener. Raises ConfigError with the class."""
    for name, allowed in CLASSES.items():
        if name in properties:
            check_class(known_keys()[name], name, properties[name], allowed)
    prefixes = tuple(f"listener.name.{listener.lower()}." for listener in listeners)
    for name, value in properties.items():
        if not name.startswith(prefixes):
            continue
        base = next(
            (allowed_class for allowed_class in CLASSES if name.endswith(f".{allowed_class}")), None
        )
        if base is not None:
            check_class(known_keys()[base], name, value, CLASSES[base])


def check_class(key: ConfigKey, name: str, text: str, allowed: tuple[str, ...]) -> None:
    """Raise ConfigError for a class that this broker does not replace."""
    value = key.parse(text)
    named: list[Any] = value if isinstance(value, list) else [value]
    for class_name in named:
        if class_name in allowed:
            continue
        names = " or ".join(filter(None, allowed))
        mend = f"name {names}, or remove it" if names else "remove it"
        raise ConfigError(
            f"Invalid value {class_name} for configuration {name}: "
            f"Class {class_name} could not be found. This broker loads no Java classes: {mend}"
        )


def check_features(values: Mapping[str, Any]) -> None:
    """Raise ConfigError for a feature that this broker lacks and must not ignore."""
    for name, why in _FEATURES.items():
        if values[name]:
            shown = ",".join(values[name]) if isinstance(values[name], list) else "true"
            raise ConfigError(f"Invalid value {shown} for configuration {name}: {why}")
