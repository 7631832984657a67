"""Spark's Kafka connector from Maven Central, of the installed PySpark's version."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from urteil.harness.dependencies.installation import Dependency, cache_dir, install_once
from urteil.harness.dependencies.maven import compose_pom, copy_dependencies
from urteil.harness.dependencies.pyspark import pyspark_folder, require_pyspark

NAME = "spark-kafka"
HOW = (
    "it comes from Maven Central by compose/spark/pom.xml (10 MB) when a scenario with Spark "
    "Structured Streaming first runs: install Maven, for example with `apt-get install maven`"
)


def spark_kafka_jars() -> list[Path]:
    """The connector's jars, which are fetched on first use. MissingDependency without PySpark."""
    require_pyspark()
    return sorted(install_once(_target(), _fetch).glob("*.jar"))


def describe_spark_kafka() -> Dependency:
    """One line of `urteil doctor`."""
    is_installed = pyspark_folder() is not None and _target().exists()
    return Dependency(
        name=NAME,
        found=is_installed,
        version=version("pyspark") if is_installed else "",
        where=str(_target()) if is_installed else "",
        how=HOW,
        required=False,
    )


def _target() -> Path:
    return cache_dir() / f"spark-kafka-{version('pyspark')}"


def _fetch(folder: Path) -> None:
    options = [f"-Dspark.version={version('pyspark')}"]
    copy_dependencies(NAME, compose_pom("spark"), folder, how=HOW, options=options)
