"""Apache Kafka's unmodified ConsumerGroupCommand with our groups."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition

from tests.conformance.conftest import Pair
from tests.conformance.kafka_tools import tool as any_tool
from tests.conformance.side import Side
from tests.subscribed import subscribed
from urteil.harness.clients.kafka_python_fixes import finish_joining

COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
RECORDS, PARTITIONS = 20, 2
FIRST_MS = 1_700_000_000_000


@pytest.fixture
def ours(pair: Pair) -> Side:
    return pair.ours


@pytest.fixture
def topic(pair: Pair, ours: Side) -> str:
    """Ten records a partition, a second between the times of two."""
    name = ours.create(pair.name("grouped"), [(1, 2, 3), (2, 3, 1)], {"retention.ms": "-1"})
    producer = KafkaProducer(bootstrap_servers=ours.bootstrap, acks="all")
    for number in range(RECORDS):
        at_ms = FIRST_MS + 1000 * (number // PARTITIONS)
        producer.send(name, b"v", partition=number % PARTITIONS, timestamp_ms=at_ms)
    producer.close()
    return name


def commit(side: Side, group: str, topic: str, offsets: dict[int, int]) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=side.bootstrap, group_id=group, enable_auto_commit=False
    )
    places = {TopicPartition(topic, partition): at for partition, at in offsets.items()}
    consumer.assign(list(places))
    consumer.commit({place: OffsetAndMetadata(at, "", -1) for place, at in places.items()})
    consumer.close()


def tool(main_class: str, bootstrap: str, *args: str) -> str:
    """The command by itself gives up after five seconds, its JVM's start among them."""
    return any_tool(main_class, bootstrap, *args, "--timeout", "60000")


def rows(text: str, first: str) -> list[list[str]]:
    """The table in a tool's output: words by line, those that begin with `first`."""
    return [line.split() for line in text.splitlines() if line.startswith(first)]


RESETS = {
    "--to-earliest": [0, 0],
    "--to-latest": [10, 10],
    "--to-current": [4, 6],
    "--to-offset 3": [3, 3],
    "--shift-by 2": [6, 8],
    "--shift-by -2": [2, 4],
    "--to-datetime 2023-11-14T22:13:25.000": [5, 5],
    "--by-duration PT0S": [10, 10],
}


@pytest.mark.thorough
def test_group_tool_resets_positions_in_every_way(pair: Pair, ours: Side, topic: str) -> None:
    group = pair.name("reset")
    commit(ours, group, topic, {0: 4, 1: 6})
    for how, expected in RESETS.items():
        output = tool(COMMAND, ours.bootstrap, "--reset-offsets", "--group", group,
                      "--topic", topic, *how.split(), "--dry-run")  # fmt: skip
        row = re.compile(rf"{group}\s+{topic}\s+(\d+)\s+(\d+)")  # no line ends between them
        offsets = {int(partition): int(offset) for partition, offset in row.findall(output)}
        assert offsets == dict(enumerate(expected)), (how, output)


@pytest.mark.thorough
def test_group_tool_resets_positions_from_a_file(
    pair: Pair, ours: Side, topic: str, tmp_path: Path
) -> None:
    group = pair.name("from-file")
    commit(ours, group, topic, {0: 4, 1: 6})
    exported = tool(COMMAND, ours.bootstrap, "--reset-offsets", "--group", group, "--topic", topic,
                    "--shift-by", "1", "--export", "--dry-run")  # fmt: skip
    lines = sorted(line for line in exported.splitlines() if "," in line)
    assert [line.rsplit(",", 1)[1] for line in lines] == ["5", "7"], exported
    plan = tmp_path / "plan.csv"
    plan.write_text("\n".join(lines) + "\n")
    tool(COMMAND, ours.bootstrap, "--reset-offsets", "--group", group, "--from-file", str(plan),
         "--execute")  # fmt: skip
    output = tool(COMMAND, ours.bootstrap, "--describe", "--group", group)
    positions = {int(row[2]): (row[3], row[4], row[5]) for row in rows(output, group)}
    assert positions == {0: ("5", "10", "5"), 1: ("7", "10", "3")}, output


def test_group_tool_lists_describes_and_deletes_groups(pair: Pair, ours: Side, topic: str) -> None:
    group = pair.name("living")
    consumer = subscribed(
        topic, ours.bootstrap, group_id=group, client_id="someone",
        auto_offset_reset="earliest", enable_auto_commit=False,
    )  # fmt: skip
    finish_joining(consumer._coordinator)
    while not consumer.assignment():
        consumer.poll(100)
    places = [TopicPartition(topic, partition) for partition in range(2)]
    consumer.commit(dict.fromkeys(places, OffsetAndMetadata(7, "", -1)))
    output = tool(COMMAND, ours.bootstrap, "--list", "--state")
    assert [row[-1] for row in rows(output, f"{group} ")] == ["Stable"], output
    output = tool(COMMAND, ours.bootstrap, "--describe", "--group", group, "--members", "--verbose")
    (row,) = rows(output, group)
    assert row[-2:] == ["2", "(0,1)"], output
    consumer.close()
    place = f"{topic}:0"  # without any position left the group itself would be gone
    output = tool(COMMAND, ours.bootstrap, "--delete-offsets", "--group", group, "--topic", place)
    assert "Successful" in output, output
    output = tool(COMMAND, ours.bootstrap, "--delete", "--group", group)
    assert "was successful" in output, output
    assert rows(tool(COMMAND, ours.bootstrap, "--list"), group) == []
