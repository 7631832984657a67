"""JVMs start from their class archive, and without it where it does not fit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from urteil.harness.dependencies.class_data_sharing import ARCHIVE, shared_classes
from urteil.harness.dependencies.java import java
from urteil.harness.dependencies.kafka import kafka_classes, kafka_classpath
from urteil.harness.dependencies.zookeeper import MAIN, zookeeper_classes, zookeeper_classpath


def started(*options: str, classpath: str, main: str) -> str:
    """What a server says that was given no settings."""
    argv = [java(), *options, "-cp", classpath, main]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "classpath", "main"),
    [
        (zookeeper_classes, zookeeper_classpath, MAIN),
        (kafka_classes, kafka_classpath, "kafka.Kafka"),
    ],
    ids=["zookeeper", "kafka"],
)
def test_a_server_loads_its_classes_from_the_file(options, classpath, main: str) -> None:  # type: ignore[no-untyped-def]
    said = started("-Xlog:class+load", *options(), classpath=classpath(), main=main)
    line, *_ = [line for line in said.splitlines() if f" {main} source:" in line]
    assert line.endswith("source: shared objects file (top)")


def test_unusable_archive_is_ignored_silently(tmp_path: Path) -> None:
    def lay(folder: Path) -> None:
        (folder / ARCHIVE).write_bytes(b"of another JVM")

    options = shared_classes(tmp_path / "some", lay)
    assert options
    said = started(*options, classpath=zookeeper_classpath(), main=MAIN)
    without = started(classpath=zookeeper_classpath(), main=MAIN)
    assert sorted(map(len, said.splitlines())) == sorted(map(len, without.splitlines()))


def test_failed_archive_has_no_options_and_is_not_retried(tmp_path: Path) -> None:
    tried = []

    def lay(folder: Path) -> None:
        tried.append(folder)
        raise TimeoutError("it never listened")

    assert [shared_classes(tmp_path / "some", lay) for _ in range(2)] == [[], []]
    assert len(tried) == 1
