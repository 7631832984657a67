"""Topics: created, listed, described, altered and deleted; the same by the tools of 2.8."""

from __future__ import annotations

from urteil.suites.courses.lab import Lab, Tool

OLD = "2.8.0"
LABS = (
    Lab(
        name="topics",
        about="topics with replicas on three brokers of one host",
        steps=(
            Tool(line="kafka-topics --create --topic first_topic",
                 shows=("Created topic first_topic.",)),
            Tool(line="kafka-topics --create --topic second_topic --partitions 3",
                 shows=("Created topic second_topic.",)),
            Tool(line="kafka-topics --create --topic third_topic --partitions 3 "
                      "--replication-factor 3", shows=("Created topic third_topic.",)),
            Tool(line="kafka-topics --create --topic fourth_topic --replication-factor 4",
                 exit_code=1, shows=("larger than available brokers",)),
            Tool(line="kafka-topics --create --topic first_topic", exit_code=1,
                 shows=("Topic 'first_topic' already exists.",)),
            Tool(line="kafka-topics --create --if-not-exists --topic first_topic"),
            Tool(line="kafka-topics --create --topic first.topic", exit_code=1,
                 shows=("collide",)),
            Tool(line="kafka-topics --create --topic no/name", exit_code=1, shows=("invalid",)),
            Tool(line="kafka-topics --list", shows=("first_topic\nsecond_topic\nthird_topic",)),
            Tool(line="kafka-topics --describe --topic first_topic",
                 shows=("PartitionCount: 3 ReplicationFactor: 1",)),
            Tool(line="kafka-topics --describe --topic third_topic",
                 shows=("Replicas: <3 brokers> Isr: <3 brokers>",)),
            Tool(line="kafka-topics --describe --under-replicated-partitions", count=0),
            Tool(line="kafka-topics --alter --topic second_topic --partitions 5"),
            Tool(line="kafka-topics --alter --topic second_topic --partitions 2", exit_code=1,
                 shows=("5",)),
            Tool(line="kafka-topics --describe --topic second_topic", shows=("PartitionCount: 5",)),
            Tool(line="kafka-topics --describe --topic nowhere", exit_code=1,
                 shows=("does not exist as expected",)),
            Tool(line="kafka-topics --delete --topic first_topic"),
            Tool(line="kafka-topics --delete --topic nowhere", exit_code=1,
                 shows=("does not exist as expected",)),
            Tool(line="kafka-topics --list --exclude-internal", until=True,
                 shows=("second_topic\nthird_topic",)),
        ),
    ),
    Lab(
        name="topics-2.8",
        about="the same with `--zookeeper`, as courses of Kafka 2 type it",
        steps=(
            Tool(line="kafka-topics --zookeeper --create --topic old_topic --partitions 3 "
                      "--replication-factor 1", release=OLD, shows=("Created topic old_topic.",)),
            Tool(line="kafka-topics --zookeeper --create --topic old_topic --partitions 3 "
                      "--replication-factor 1", release=OLD, exit_code=1,
                 shows=("already exists",)),
            Tool(line="kafka-topics --zookeeper --create --topic old_wide --partitions 1 "
                      "--replication-factor 5", release=OLD, exit_code=1,
                 shows=("larger than available brokers: 3",)),
            Tool(line="kafka-topics --zookeeper --list", release=OLD, shows=("old_topic",)),
            Tool(line="kafka-topics --zookeeper --describe --topic old_topic", release=OLD,
                 shows=("PartitionCount: 3 ReplicationFactor: 1", "Isr: <1 brokers>")),
            Tool(line="kafka-topics --zookeeper --alter --topic old_topic --partitions 4",
                 release=OLD, shows=("Adding partitions succeeded!",)),
            Tool(line="kafka-topics --bootstrap-server --describe --topic old_topic", release=OLD,
                 until=True, shows=("PartitionCount: 4",)),
            Tool(line="kafka-configs --zookeeper --alter --entity-type topics --entity-name "
                      "old_topic --add-config retention.ms=3600000", release=OLD,
                 shows=("Completed updating config for entity: topic 'old_topic'.",)),
            Tool(line="kafka-configs --zookeeper --describe --entity-type topics --entity-name "
                      "old_topic", release=OLD, shows=("retention.ms=3600000",)),
            Tool(line="kafka-console-producer --broker-list --topic old_topic", release=OLD,
                 stdin="hello\nworld\n"),
            Tool(line="kafka-console-consumer --topic old_topic --from-beginning "
                      "--max-messages 2", release=OLD, is_ordered=False, shows=("hello", "world")),
            Tool(line="kafka-topics --zookeeper --delete --topic old_topic", release=OLD,
                 shows=("Topic old_topic is marked for deletion.",)),
            Tool(line="kafka-topics --zookeeper --list --exclude-internal", release=OLD, until=True,
                 shows=("third_topic",)),
        ),
    ),
)  # fmt: skip
