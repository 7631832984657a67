"""The declared releases of Apache Kafka."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner

from urteil.chaos.faults.base.fault import KRAFT, target_kind
from urteil.cli.run import run
from urteil.harness.dependencies.kafka import VERSION
from urteil.harness.dependencies.kafka_logging import kafka_logging
from urteil.harness.dependencies.kafka_releases import (
    LINES,
    ReleaseLine,
    knows_setting,
    parse_version,
    release_line,
    releases,
    topic_setting,
)
from urteil.harness.dependencies.maven import compose_pom
from urteil.harness.run.playable import NotPlayable, fit_to_releases
from urteil.harness.scenario import TopicSpec
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.targets import KafkaTarget, KraftTarget, Mix, parse_target
from urteil.harness.targets.target import (
    AUTHORIZER,
    BROKER_ROLE,
    CONTROLLER_ROLE,
    BrokerNode,
    common_properties,
)


def test_releases_are_in_order_and_end_with_the_default() -> None:
    versions = list(releases())
    assert versions == sorted(versions, key=parse_version)
    assert (versions[0], versions[-1]) == ("0.10.2.2", "4.4.0")
    assert [version for line in LINES if line.has_zookeeper for version in line.versions][
        -1
    ] == VERSION


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_kind_of_a_release_follows_its_metadata_planes(line: ReleaseLine) -> None:
    for version in line.versions:
        is_kraft = target_kind(f"kafka:{version}") == KRAFT
        assert is_kraft == isinstance(parse_target(f"kafka:{version}"), KraftTarget)
        assert is_kraft == (not line.has_zookeeper)
    assert line.has_zookeeper or line.has_kraft


def test_profiles_of_releases_exist_in_the_pom() -> None:
    pom = ElementTree.parse(compose_pom("kafka"))
    names = {"m": "http://maven.apache.org/POM/4.0.0"}
    profiles = {profile.text for profile in pom.iterfind("m:profiles/m:profile/m:id", names)}
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
        ("4.1.9", "there is no release 4.1.9"),
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
    assert "4.1.0 to 4.1.2" in answer.output


def test_unknown_release_in_a_mix_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"no release 3\.9\.7"):
        parse_target("mix:urteil,kafka:3.9.7")
    assert isinstance(parse_target("mix:urteil,kafka:2.8.2"), Mix)


def test_upgrade_begins_with_the_line_before() -> None:
    assert KafkaTarget().previous_release().version == "3.8.0"
    assert KafkaTarget().older_protocol() == {"inter.broker.protocol.version": "3.8"}
    assert KafkaTarget().features() == {}
    older = KafkaTarget(version="1.0.2")
    assert older.previous_release().version == "0.11.0.0"
    assert older.older_protocol() == {
        "inter.broker.protocol.version": "0.11.0", "log.message.format.version": "0.11.0"
    }  # fmt: skip


def test_upgrade_without_zookeeper_begins_with_the_last_release_before_4() -> None:
    for version in ("4.0.0", "4.4.0"):
        target = KraftTarget(version=version)
        assert target.previous_release() == KraftTarget(version="3.9.1")
        assert target.older_protocol() == {}
    with pytest.raises(ValueError, match=r"to 4\.0 and later releases, not to 3\.9\.1"):
        KraftTarget().previous_release()


def test_settings_of_later_releases_are_left_out() -> None:
    assert not KafkaTarget(version="2.3.1").knows_setting("replica.selector.class")
    assert KafkaTarget(version="2.4.0").knows_setting("replica.selector.class")
    assert KafkaTarget().knows_setting("replica.selector.class")
    assert knows_setting("0.10.2.2", "min.insync.replicas")


def test_settings_that_a_release_removed_are_left_out() -> None:
    removed = "controlled.shutdown.max.retries"
    assert KraftTarget(version="3.9.1").knows_setting(removed)
    assert not KraftTarget(version="4.0.0").knows_setting(removed)


def test_scenario_with_a_value_that_its_release_rejects_is_refused() -> None:
    scenario = msgspec.structs.replace(SCENARIOS["transactions"], target="kafka:4.0.2")
    topics = (TopicSpec(config={"segment.bytes": "16384"}),)
    load = msgspec.structs.replace(scenario.workload, topics=topics)
    small = msgspec.structs.replace(scenario, workload=load)
    with pytest.raises(NotPlayable, match=r"segment.bytes=16384, and Apache Kafka 4.0.2 accepts"):
        fit_to_releases(small)
    for target in ("kafka-kraft:3.9.1", "kafka:4.1.0"):
        assert fit_to_releases(msgspec.structs.replace(small, target=target))


def test_low_value_gets_the_internal_name_of_newer_releases() -> None:
    low, high = ("segment.bytes", "16384"), ("segment.bytes", str(1 << 20))
    assert topic_setting("4.4.0", *low) == "internal.segment.bytes"
    assert topic_setting("4.4.0", *high) == "segment.bytes"
    assert topic_setting("3.9.1", *low) == "segment.bytes"
    assert topic_setting("4.4.0", "cleanup.policy", "compact") == "cleanup.policy"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["zookeeper-pause"], "the fault pause acts on ZooKeeper there"),
        (["rights"], "into ZooKeeper: --target kafka has it"),
        (
            ["demo", "--zookeepers", "3"],
            "--zookeepers: --target kafka:4.4.0 has no ZooKeeper: --controllers N gives",
        ),
    ],
)
def test_what_needs_zookeeper_is_refused_on_a_release_without(
    arguments: list[str], reason: str
) -> None:
    answer = CliRunner().invoke(run, [*arguments, "--target", "kafka:4.4.0"])
    assert answer.exit_code == 2
    assert reason in " ".join(answer.output.split())


@pytest.mark.parametrize(("option", "value"), [("--controllers", "3"), ("--quorum", "dynamic")])
def test_properties_of_a_quorum_are_refused_with_zookeeper(option: str, value: str) -> None:
    answer = CliRunner().invoke(run, ["demo", "--target", "kafka", option, value])
    assert answer.exit_code == 2
    reason = f"{option}: --target kafka has ZooKeeper and no quorum of KRaft"
    assert reason in " ".join(answer.output.split())


def test_change_of_voters_is_refused_in_a_static_quorum() -> None:
    answer = CliRunner().invoke(run, ["quorum-voters", "--quorum", "static"])
    assert answer.exit_code == 2
    assert "remove_voter needs voters that can change" in " ".join(answer.output.split())


def test_releases_without_zookeeper_alone_use_log4j2(tmp_path: Path) -> None:
    for line in LINES:
        option = kafka_logging(line.versions[0]).jvm_option(tmp_path / "file")
        assert option.startswith("-Dlog4j2.") == (not line.has_zookeeper)


@pytest.mark.parametrize("version", ["2.8.2", "3.2.3"])
def test_release_without_kraft_support_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match=rf"4.4.0 without ZooKeeper, not {version}"):
        parse_target(f"kafka-kraft:{version}")


def test_quorum_is_static_before_its_voters_could_change() -> None:
    scenario = SCENARIOS["quorum-voters"]
    with pytest.raises(NotPlayable, match=r"the voters of .*3.8.1 are static"):
        fit_to_releases(msgspec.structs.replace(scenario, target="kafka-kraft:3.8.1"))
    assert fit_to_releases(msgspec.structs.replace(scenario, target="kafka-kraft:3.9.1"))


@pytest.mark.parametrize(
    ("roles", "advertised"),
    [
        ((BROKER_ROLE, CONTROLLER_ROLE), "CLIENT://127.0.0.1:5,INTERNAL://b1:1"),
        ((CONTROLLER_ROLE,), ""),
    ],
)
def test_controllers_are_not_advertised_before_they_may_be(
    roles: tuple[str, ...], advertised: str, tmp_path: Path
) -> None:
    """A release before 3.9 does not start with them."""
    node = BrokerNode(
        name="b1", broker_id=1, home=tmp_path, address="127.0.0.1", internal_port=1,
        client_port=2, for_clients=("127.0.0.1", 5), metrics=("127.0.0.1", 3),
        zookeeper_connect="", quorum_voters="1@b1:4", controller_port=4, roles=roles,
    )  # fmt: skip
    settings = {**common_properties(node), **KraftTarget(version="3.8.1").properties(node)}
    assert settings["advertised.listeners"] == advertised
    assert "advertised.listeners" not in KraftTarget(version="3.9.1").properties(node)
    assert "CONTROLLER://b1:4" in common_properties(node)["advertised.listeners"]


def test_release_without_zookeeper_has_no_zookeeper_mode() -> None:
    with pytest.raises(ValueError, match=r"4\.4\.0 has no ZooKeeper mode"):
        KafkaTarget(version="4.4.0")


@pytest.mark.parametrize("version", ["3.9.1", "4.1.2"])
def test_authorizer_of_zookeeper_mode_is_that_of_kraft_without_zookeeper(version: str) -> None:
    target = KraftTarget(version=version)
    assert target.knows_setting(AUTHORIZER)
    assert target.translate_class(AUTHORIZER).endswith("metadata.authorizer.StandardAuthorizer")
    assert target.translate_class("User:ANONYMOUS") == "User:ANONYMOUS"


def test_scenario_with_an_authorizer_is_played_without_zookeeper() -> None:
    scenario = msgspec.structs.replace(SCENARIOS["mirror-passive"], target="kafka:4.1.2")
    assert fit_to_releases(scenario) == scenario
