"""ConfigCommand of Apache Kafka 3.9.1 and, with `--zookeeper`, of 2.8.0."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.configs import BROKER, LOGGER, TOPIC, replace, values
from tests.conformance.conftest import Pair
from tests.conformance.kafka_tools import old_tool, tool
from tests.conformance.permitted import OF_THE_NODE
from tests.conformance.side import Side

CONFIG = "kafka.admin.ConfigCommand"
RATE = "leader.replication.throttled.rate"
OF_ALL: dict[str, str | None] = {"log.segment.delete.delay.ms": "3000"}


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    name = pair.name("by-tools")
    pair.ours.create(name)
    return name


def ask_brokers(calls: Sequence[tuple[Side, Sequence[str]]]) -> list[str]:
    """What ConfigCommand of 3.9.1 prints: calls that do not depend on each other, two at once."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda call: tool(CONFIG, call[0].bootstrap, *call[1]), calls))


def of(kind: str, name: str | None, *args: str) -> list[str]:
    entity = ["--entity-default"] if name is None else ["--entity-name", name]
    return ["--entity-type", kind, *entity, *args]


def test_config_tool_changes_each_kind_of_resource(pair: Pair, topic: str) -> None:
    """Each kind of resource; other settings of the topic stay, brackets hold lists."""
    ours = pair.ours
    replace(ours, TOPIC, topic, ("flush.ms", "7"), ("segment.ms", "5000"))
    given = "retention.ms=60000,cleanup.policy=[compact,delete]"
    calls = [
        of("topics", topic, "--alter", "--add-config", given, "--delete-config", "flush.ms"),
        of("brokers", "1", "--alter", "--add-config", f"{RATE}=1000"),
        of("brokers", None, "--alter", "--add-config", "log.segment.delete.delay.ms=3000"),
        of("broker-loggers", "1", "--alter", "--add-config", "fetcher=WARN"),
    ]
    said = ask_brokers([(ours, call) for call in calls])
    assert all("Completed updating" in output for output in said), said
    keys = ("retention.ms", "cleanup.policy", "flush.ms", "segment.ms")
    assert values(ours, TOPIC, topic, *keys) == {
        "retention.ms": "60000",
        "cleanup.policy": "compact,delete",
        "flush.ms": "9223372036854775807",
        "segment.ms": "5000",
    }
    ours.until(lambda: values(ours, BROKER, "1", RATE) == {RATE: "1000"})
    ours.until_everywhere(lambda to: values(ours, BROKER, "", to=to) == OF_ALL)
    assert values(ours, LOGGER, "1", "fetcher") == {"fetcher": "WARN"}
    for name in ("1", ""):
        replace(ours, BROKER, name)


def test_config_tool_describes_all_settings_of_a_broker_alike(pair: Pair) -> None:
    """`--describe --all` prints the same lines, what is each node's own aside."""
    call = of("brokers", "1", "--describe", "--all")
    pair.ours.until(lambda: values(pair.ours, BROKER, "") == {})
    printed = ask_brokers([(side, call) for side in (pair.ours, pair.theirs)])
    ours, theirs = (_settings(text) for text in printed)
    assert ours == theirs
    assert len(ours) > 300


def _settings(text: str) -> dict[str, str]:
    matches = dict(re.findall(r"^  ([\w.]+)=(.*)$", text, re.MULTILINE))
    return {name: line for name, line in matches.items() if name not in OF_THE_NODE}


def test_settings_written_to_zookeeper_take_effect(pair: Pair, topic: str) -> None:
    """No request reaches a broker; it reads the change notification."""
    ours = pair.ours
    calls = [
        of("topics", topic, "--alter", "--add-config", "retention.ms=70000"),
        of("brokers", "2", "--alter", "--add-config", f"{RATE}=2000"),
    ]
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda call: old_tool(CONFIG, ours.zookeeper, *call), calls))
    assert all("Completed updating" in output for output in said), said
    assert values(ours, TOPIC, topic, "retention.ms") == {"retention.ms": "70000"}
    ours.until(lambda: values(ours, BROKER, "2", RATE, to=2) == {RATE: "2000"})
    replace(ours, BROKER, "2", to=2)
