"""Kafka Streams from Maven Central, with the lab's programs over it."""

from __future__ import annotations

from urteil.harness.dependencies.installation import Dependency
from urteil.harness.dependencies.java_program import (
    describe_java_program,
    java_classpath,
    java_program,
)

VERSION = "3.9.1"
NAME, APPLICATIONS, SMOKE_TEST = "kafka-streams", "streams", "streams-smoke"
HOW = (
    "it comes from Maven Central by the pom.xml in compose/streams and compose/streams-smoke: "
    "install Maven, for example with `apt-get install maven`; only scenarios with Kafka Streams "
    "need it"
)


def streams_classpath(version: str = VERSION) -> str:
    """The class path of the lab's applications, compiled against a release on first use."""
    return java_classpath(java_program(APPLICATIONS, version, how=HOW))


def smoke_test_classpath(version: str = VERSION) -> str:
    """The class path of StreamsSmokeTest of a release, fetched on first use."""
    return java_classpath(java_program(SMOKE_TEST, version, how=HOW))


def describe_streams() -> Dependency:
    """One line of `urteil doctor`."""
    return describe_java_program(NAME, APPLICATIONS, VERSION, how=HOW)
