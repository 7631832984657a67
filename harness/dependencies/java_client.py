"""The Java client of Apache Kafka 4.x from Maven Central, with the lab's program over it."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.harness.dependencies.installation import Dependency
from urteil.harness.dependencies.java import QUICK_START, java
from urteil.harness.dependencies.java_program import (
    describe_java_program,
    java_classpath,
    java_program,
)

VERSION = "4.4.0"
NAME, PROGRAM = "kafka-clients", "java-client"
HOW = (
    "it comes from Maven Central by the pom.xml in compose/java-client: install Maven, for example "
    "with `apt-get install maven`; only `--client java` needs it"
)


def java_classes() -> str:
    """The class path of the program, which is fetched and compiled on first use."""
    return java_classpath(java_program(PROGRAM, VERSION, how=HOW))


def java_client(main_class: str, args: Sequence[str]) -> list[str]:
    """argv of a class of the program."""
    return [java(), "-Xmx256m", *QUICK_START, "-cp", java_classes(), main_class, *args]


def describe_java_client() -> Dependency:
    """One line of `urteil doctor`."""
    return describe_java_program(NAME, PROGRAM, VERSION, how=HOW)
