"""What the lab runs on and does not bring itself, kept once a machine under the user's cache."""

from __future__ import annotations

from urteil.harness.parts.chromium import chromium, chromium_part
from urteil.harness.parts.comet import comet_jar, comet_part
from urteil.harness.parts.compose import compose_part, docker_compose
from urteil.harness.parts.faketime import faketime_library, faketime_part
from urteil.harness.parts.java import java, java_part, utf8_locale
from urteil.harness.parts.kafka import kafka_classes, kafka_classpath, kafka_part, kafka_tool
from urteil.harness.parts.part import MissingPart, Part, cache_dir
from urteil.harness.parts.pyspark import pyspark_part, require_pyspark
from urteil.harness.parts.python import simulation_part, simulation_python
from urteil.harness.parts.strace import strace_binary, strace_part
from urteil.harness.parts.toxiproxy import toxiproxy_binary, toxiproxy_part
from urteil.harness.parts.zookeeper import zookeeper_classes, zookeeper_classpath, zookeeper_part

__all__ = [
    "MissingPart",
    "Part",
    "cache_dir",
    "chromium",
    "comet_jar",
    "docker_compose",
    "faketime_library",
    "install_all",
    "inventory",
    "java",
    "kafka_classes",
    "kafka_classpath",
    "kafka_tool",
    "require_pyspark",
    "required_parts",
    "simulation_python",
    "strace_binary",
    "toxiproxy_binary",
    "utf8_locale",
    "zookeeper_classes",
    "zookeeper_classpath",
]


def required_parts() -> list[Part]:
    """What every cluster runs on, as it is found now; installs nothing."""
    return [java_part(), zookeeper_part(), toxiproxy_part()]


def inventory() -> list[Part]:
    """Every part as `urteil doctor` shows it; installs nothing. Takes its time: each Python that
    there is is asked for its version."""
    return [
        *required_parts(),
        kafka_part(),
        compose_part(),
        faketime_part(),
        strace_part(),
        simulation_part(),
        pyspark_part(),
        comet_part(),
        chromium_part(),
    ]


def install_all(*, kafka: bool = False, compose: bool = False) -> None:
    """Install what is missing; MissingPart names what could not be."""
    java()
    zookeeper_classes()
    toxiproxy_binary()
    if kafka:
        kafka_classes()
    if compose:
        docker_compose()
