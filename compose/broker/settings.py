"""The settings of a broker in a container: a property file, and `KAFKA_*` variables above it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from urteil.broker.config.property_file import load_properties

PREFIX = "KAFKA_"
NOT_SETTINGS = {
    "KAFKA_VERSION",
    "KAFKA_HEAP_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
}


def from_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """`KAFKA_LOG_DIRS` is `log.dirs`; `_` a dot, `__` an underscore, `___` a dash.

    As the images of Apache Kafka read them (kafka.docker.KafkaDockerWrapper of 3.9): every
    underscore becomes a dot first, then three dots a dash and two an underscore. Variables of
    those images that are about their JVM are not settings.
    """
    named = {
        name: value
        for name, value in variables.items()
        if name.startswith(PREFIX) and name not in NOT_SETTINGS
    }
    return {setting(name): value for name, value in sorted(named.items())}


def setting(variable: str) -> str:
    """The setting that a `KAFKA_*` variable stands for."""
    name = variable.removeprefix(PREFIX).lower()
    return name.replace("_", ".").replace("...", "-").replace("..", "_")


def config_file() -> Path:
    """The property file: `URTEIL_CONFIG`, /etc/urteil/server.properties unless it is set."""
    return Path(os.environ.get("URTEIL_CONFIG") or "/etc/urteil/server.properties")


def settings() -> dict[str, str]:
    """What the broker of this container runs with. Raises OSError and ValueError for a file that
    cannot be read."""
    return load_properties(config_file()) | from_variables(os.environ)
