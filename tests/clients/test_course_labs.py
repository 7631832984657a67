"""Ten commands of the courses' labs over our broker; suites/courses compares all with Kafka's."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.pair import Pair
from urteil.harness.kafka_tools import Address
from urteil.suites.courses.lab import Lab, Tool
from urteil.suites.courses.player import LearnerPlace, play_lab


def ten_commands(topic: str) -> Lab:
    group = f"--group {topic}-group"
    settings = f"kafka-configs --entity-type topics --entity-name {topic}"
    return Lab(
        name="ten commands",
        about="topics, records, groups, settings, ZooKeeper",
        steps=(
            Tool(line=f"kafka-topics --create --topic {topic} --partitions 3",
                 shows=(f"Created topic {topic}.",)),
            Tool(line=f"kafka-topics --describe --topic {topic}", count=4,
                 shows=("PartitionCount: 3 ReplicationFactor: 3", "Isr: <3 brokers>")),
            Tool(line=f"kafka-console-producer --topic {topic} --request-required-acks all "
                      "--property parse.key=true --property key.separator=:",
                 stdin="1:Alice\n2:Bob\n1:Alicia\n"),
            Tool(line=f"kafka-console-consumer --topic {topic} {group} --from-beginning "
                      "--max-messages 3", count=3, shows=("Alice\n",)),
            Tool(line=f"kafka-get-offsets --topic {topic} --time earliest", count=3,
                 shows=(f"{topic}:0:0",)),
            Tool(line=f"kafka-consumer-groups {group} --reset-offsets --to-earliest "
                      f"--topic {topic} --execute --timeout 30000", until=True,
                 shows=(f"{topic} 0 0",)),
            Tool(line=f"kafka-consumer-groups {group} --describe --timeout 30000",
                 shows=(f"{topic} 0 0",)),
            Tool(line=f"{settings} --alter --add-config retention.ms=3600000",
                 shows=(f"Completed updating config for topic {topic}.",)),
            Tool(line="zookeeper-shell ls /brokers/ids", shows=("[1, 2, 3]",)),
            Tool(line=f"kafka-topics --zookeeper --describe --topic {topic}", release="2.8.0",
                 shows=("Configs: retention.ms=3600000",)),
        ),
    )  # fmt: skip


def test_lab_commands_print_the_course_output(pair: Pair) -> None:
    address = Address(bootstrap=pair.ours.bootstrap, zookeeper=pair.ours.zookeeper, config="")
    desk = LearnerPlace("ours", {"client": address}, Path("unused"), None)
    try:
        result = play_lab(ten_commands(pair.name("labs")), [desk])
    finally:
        desk.close()
    assert result.findings == [], "\n".join(map(str, result.findings))
    assert result.commands == 10
