"""The declared releases of Apache Kafka."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from urteil.cli.run import run
from urteil.harness.dependencies.kafka import VERSION
from urteil.harness.dependencies.kafka_releases import (
    LINES,
    knows_setting,
    parse_version,
    release_line,
    releases,
)
from urteil.harness.dependencies.maven import compose_pom
from urteil.harness.targets import KafkaTarget, Mix, parse_target


def test_releases_are_in_order_and_end_with_the_default() -> None:
    versions = list(releases())
    assert versions == sorted(versions, key=parse_version)
    assert (versions[0], versions[-1]) == ("0.10.2.2", VERSION)


def test_profiles_of_releases_exist_in_the_pom() -> None:
    pom = ElementTree.parse(compose_pom("kafka"))
    names = {"m": "http://maven.apache.org/POM/4.0.0"}
    profiles = {one.text for one in pom.iterfind("m:profiles/m:profile/m:id", names)}
    assert {name for line in LINES for name in line.profiles} == profiles


def test_the_pom_alone_is_that_of_the_default_release() -> None:
    pom = ElementTree.parse(compose_pom("kafka"))
    names = {"m": "http://maven.apache.org/POM/4.0.0"}
    assert pom.findtext("m:properties/m:kafka.version", "", names) == VERSION
    line = release_line(VERSION)
    assert pom.findtext("m:properties/m:scala.version", "", names) == line.scala
    assert line.maven_options == [f"-Dscala.version={line.scala}"]


def test_old_release_has_maven_options_for_jaxb_and_scala() -> None:
    assert release_line("0.11.0.3").maven_options == ["-Dscala.version=2.12", "-Pjaxb"]
    assert release_line("2.4.1").maven_options == ["-Dscala.version=2.13", "-Pzookeeper-client"]


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("4.1.1", "has no ZooKeeper mode"),
        ("0.10.1.0", "there is no release 0.10.1.0"),
        ("2.8.9", "there is no release 2.8.9"),
        ("latest", "there is no release latest"),
    ],
)
def test_unknown_release_is_rejected_with_known_ones(version: str, reason: str) -> None:
    answer = CliRunner().invoke(run, ["demo", "--target", f"kafka:{version}"])
    assert answer.exit_code == 2
    assert reason in answer.output
    assert "0.11.0.0 to 0.11.0.3" in answer.output


def test_unknown_release_in_a_mix_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"no release 3\.9\.7"):
        parse_target("mix:urteil,kafka:3.9.7")
    assert isinstance(parse_target("mix:urteil,kafka:2.8.2"), Mix)


def test_upgrade_begins_with_the_line_before() -> None:
    assert KafkaTarget().previous_release().version == "3.8.0"
    assert KafkaTarget().older_protocol() == {"inter.broker.protocol.version": "3.8"}
    older = KafkaTarget(version="1.0.2")
    assert older.previous_release().version == "0.11.0.0"
    assert older.older_protocol() == {
        "inter.broker.protocol.version": "0.11.0", "log.message.format.version": "0.11.0"
    }  # fmt: skip


def test_settings_of_later_releases_are_left_out() -> None:
    assert not KafkaTarget(version="2.3.1").knows_setting("replica.selector.class")
    assert KafkaTarget(version="2.4.0").knows_setting("replica.selector.class")
    assert KafkaTarget().knows_setting("replica.selector.class")
    assert knows_setting("0.10.2.2", "min.insync.replicas")


@pytest.mark.parametrize("version", ["2.8.2", "3.8.1", "4.1.1", "nonsense"])
def test_release_that_the_lab_does_not_start_without_zookeeper_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match=f"3.9.0 and 3.9.1 without ZooKeeper, not {version}"):
        parse_target(f"kafka-kraft:{version}")
