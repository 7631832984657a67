"""All dependencies: the required ones, those of `urteil doctor`, and their installation."""

from __future__ import annotations

from urteil.harness.dependencies.asyncssh import describe_asyncssh
from urteil.harness.dependencies.chromium import describe_chromium
from urteil.harness.dependencies.comet import describe_comet
from urteil.harness.dependencies.connect import describe_connect
from urteil.harness.dependencies.docker_compose import describe_compose, docker_compose
from urteil.harness.dependencies.faketime import describe_faketime
from urteil.harness.dependencies.flink import describe_flink
from urteil.harness.dependencies.flush_recorder import describe_flush_recorder
from urteil.harness.dependencies.installation import Dependency
from urteil.harness.dependencies.java import describe_java, java
from urteil.harness.dependencies.java_client import describe_java_client
from urteil.harness.dependencies.kafka import describe_kafka, kafka_classes
from urteil.harness.dependencies.mirror import describe_mirror
from urteil.harness.dependencies.postgresql import describe_postgresql
from urteil.harness.dependencies.pyspark import describe_pyspark
from urteil.harness.dependencies.schema_registry import describe_schema_registry
from urteil.harness.dependencies.simulation_python import describe_simulation
from urteil.harness.dependencies.spark_kafka import describe_spark_kafka
from urteil.harness.dependencies.strace import describe_strace
from urteil.harness.dependencies.streams import describe_streams
from urteil.harness.dependencies.toxiproxy import describe_toxiproxy, toxiproxy_binary
from urteil.harness.dependencies.zookeeper import describe_zookeeper, zookeeper_classes


def describe_required() -> list[Dependency]:
    """The dependencies of every cluster, as found now. Installs nothing."""
    return [describe_java(), describe_zookeeper(), describe_toxiproxy()]


def list_dependencies() -> list[Dependency]:
    """Every dependency as `urteil doctor` shows it. Installs nothing.

    It takes a while, since it runs every Python for its version.
    """
    return [
        *describe_required(),
        describe_kafka(),
        describe_compose(),
        describe_postgresql(),
        describe_faketime(),
        describe_strace(),
        describe_flush_recorder(),
        describe_asyncssh(),
        describe_simulation(),
        describe_pyspark(),
        describe_comet(),
        describe_spark_kafka(),
        describe_flink(),
        describe_schema_registry(),
        describe_connect(),
        describe_mirror(),
        describe_streams(),
        describe_java_client(),
        describe_chromium(),
    ]


def install_all(*, kafka: bool = False, compose: bool = False) -> None:
    """Install missing dependencies. Raises MissingDependency for the first failure."""
    java()
    zookeeper_classes()
    toxiproxy_binary()
    if kafka:
        kafka_classes()
    if compose:
        docker_compose()
