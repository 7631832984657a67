"""The arguments of Kafka's tools: the address and the configuration file that a line lacks."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from urteil.harness.dependencies.kafka import kafka_classpath
from urteil.harness.kafka_tools import (
    NEW,
    OLD,
    TOOLS,
    Address,
    needs_cluster,
    tool_arguments,
    tool_name,
)

PLAIN = Address(bootstrap="b:9", zookeeper="z:2", config="admin.properties")
SECURED = PLAIN._replace(is_secured=True)


def line(tool: str, words: str, address: Address | None = PLAIN, release: str = NEW) -> str:
    call = TOOLS[tool].call(release)
    assert call is not None
    return " ".join(tool_arguments(call, words.split(), address))


@pytest.mark.parametrize(
    ("tool", "words", "filled"),
    [
        ("kafka-topics", "--list", "--bootstrap-server b:9 --list"),
        ("kafka-topics", "--bootstrap-server c:1 --list", "--bootstrap-server c:1 --list"),
        ("kafka-topics", "--bootstrap-server=c:1 --list", "--bootstrap-server=c:1 --list"),
        ("kafka-topics", "--bootstrap-server --list", "--bootstrap-server b:9 --list"),
        ("kafka-topics", "--list --bootstrap-server", "--list --bootstrap-server b:9"),
        ("kafka-configs", "--zookeeper --describe", "--zookeeper z:2 --describe"),
        ("kafka-acls", "--list --authorizer-properties",
         "--list --authorizer-properties zookeeper.connect=z:2"),
        ("kafka-cluster", "cluster-id", "cluster-id --bootstrap-server b:9"),
        ("kafka-log-dirs", "--broker-list 1", "--bootstrap-server b:9 --broker-list 1"),
        ("kafka-dump-log", "--files f", "--files f"),
        ("kafka-e2e-latency", "t 10 all 100", "b:9 t 10 all 100"),
        ("kafka-e2e-latency", "c:1 t 10 all 100", "c:1 t 10 all 100"),
        ("zookeeper-shell", "ls /", "-server z:2 ls /"),
        ("zookeeper-shell", "", "-server z:2"),
        ("zookeeper-shell", "localhost:2181/chroot ls /", "-server localhost:2181/chroot ls /"),
        ("kafka-producer-perf-test", "--topic t", "--producer.config admin.properties --topic t"),
        ("kafka-console-producer", "--broker-list c:1 --topic t", "--broker-list c:1 --topic t"),
    ],
)  # fmt: skip
def test_missing_address_is_filled_in(tool: str, words: str, filled: str) -> None:
    assert line(tool, words) == filled


@pytest.mark.parametrize(
    ("tool", "words", "filled"),
    [
        ("kafka-topics", "--list",
         "--bootstrap-server b:9 --command-config admin.properties --list"),
        ("kafka-topics", "--command-config mine --list",
         "--bootstrap-server b:9 --command-config mine --list"),
        ("kafka-console-producer", "--topic t --bootstrap-server c:1",
         "--producer.config admin.properties --topic t --bootstrap-server c:1"),
        ("kafka-configs", "--zookeeper --describe", "--zookeeper z:2 --describe"),
        ("kafka-leader-election", "--topic t",
         "--bootstrap-server b:9 --admin.config admin.properties --topic t"),
        ("kafka-dump-log", "--files f", "--files f"),
    ],
)  # fmt: skip
def test_missing_configuration_of_a_cluster_with_users_is_filled_in(
    tool: str, words: str, filled: str
) -> None:
    assert line(tool, words, SECURED) == filled


def test_old_release_writes_into_zookeeper() -> None:
    assert line("kafka-topics", "--list", SECURED, OLD) == "--zookeeper z:2 --list"
    filled = "--bootstrap-server b:9 --list"
    assert line("kafka-topics", "--bootstrap-server --list", PLAIN, OLD) == filled


def test_help_and_tools_of_files_need_no_cluster() -> None:
    def needs(tool: str, *args: str) -> bool:
        call = TOOLS[tool].call(NEW)
        assert call is not None
        return needs_cluster(call, args)

    assert needs("kafka-topics", "--list")
    assert needs("kafka-producer-perf-test")
    assert not needs("kafka-topics", "--help")
    assert not needs("kafka-dump-log", "--files", "f")
    assert line("kafka-topics", "--help", None) == "--help"
    assert line("zookeeper-shell", "-help", None) == "-help"


def test_suffix_of_a_script_has_no_meaning() -> None:
    assert tool_name("kafka-topics.sh") == "kafka-topics"


@pytest.mark.parametrize("release", [NEW, pytest.param(OLD, marks=pytest.mark.thorough)])
def test_each_tool_is_a_class_of_its_release(release: str) -> None:
    calls = {name: call for name, tool in TOOLS.items() if (call := tool.call(release))}
    folder = Path(kafka_classpath(release)).parent
    jars = [path for path in folder.glob("*.jar") if re.match("kafka", path.name)]
    classes = {name for jar in jars for name in zipfile.ZipFile(jar).namelist()}
    unknown = {
        name: call.main_class
        for name, call in calls.items()
        if f"{call.main_class.replace('.', '/')}.class" not in classes
    }
    assert unknown == {}
