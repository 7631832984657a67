"""All parts: those that are required, those that `urteil doctor` shows, and their installation."""

from __future__ import annotations

from urteil.harness.parts.chromium import chromium_part
from urteil.harness.parts.comet import comet_part
from urteil.harness.parts.compose import compose_part, docker_compose
from urteil.harness.parts.faketime import faketime_part
from urteil.harness.parts.java import java, java_part
from urteil.harness.parts.kafka import kafka_classes, kafka_part
from urteil.harness.parts.part import Part
from urteil.harness.parts.pyspark import pyspark_part
from urteil.harness.parts.python import simulation_part
from urteil.harness.parts.strace import strace_part
from urteil.harness.parts.toxiproxy import toxiproxy_binary, toxiproxy_part
from urteil.harness.parts.zookeeper import zookeeper_classes, zookeeper_part


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
