"""Settings of topics and brokers, added and deleted; min.insync.replicas that refuses writes."""

from __future__ import annotations

from urteil.suites.courses.lab import Lab, StartBrokers, StopBroker, Tool

TOPIC = "kafka-configs --entity-type topics --entity-name settings"
SEND = "kafka-console-producer --topic safe --producer-property acks=all"
QUICK = (
    "--producer-property delivery.timeout.ms=4000 --producer-property request.timeout.ms=3000 "
    "--producer-property linger.ms=0"
)
LABS = (
    Lab(
        name="configs",
        about="settings of topics and brokers, added and deleted",
        steps=(
            Tool(line="kafka-topics --create --topic settings --partitions 3 "
                      "--replication-factor 1"),
            Tool(line=f"{TOPIC} --describe", shows=("Dynamic configs for topic settings are:",)),
            Tool(line=f"{TOPIC} --alter --add-config min.insync.replicas=2,retention.ms=1000",
                 shows=("Completed updating config for topic settings.",)),
            Tool(line=f"{TOPIC} --describe", shows=("min.insync.replicas=2", "retention.ms=1000"),
                 is_ordered=False),
            Tool(line="kafka-topics --describe --topic settings", shows=("min.insync.replicas=2",)),
            Tool(line=f"{TOPIC} --alter --delete-config min.insync.replicas,retention.ms",
                 shows=("Completed updating config for topic settings.",)),
            Tool(line=f"{TOPIC} --describe", count=1),
            Tool(line=f"{TOPIC} --alter --add-config no.such.setting=1", exit_code=1,
                 shows=("no.such.setting",)),
            Tool(line=f"{TOPIC} --alter --add-config retention.ms=soon", exit_code=1,
                 shows=("retention.ms",)),
            Tool(line=f"{TOPIC} --alter --delete-config retention.bytes", exit_code=1,
                 shows=("retention.bytes",)),
            Tool(line="kafka-configs --entity-type topics --entity-name nowhere --alter "
                      "--add-config retention.ms=1", exit_code=1, shows=("nowhere",)),
            Tool(line="kafka-configs --entity-type brokers --entity-name 1 --alter "
                      "--add-config background.threads=8",
                 shows=("Completed updating config for broker 1.",)),
            Tool(line="kafka-configs --entity-type brokers --entity-name 1 --describe",
                 shows=("background.threads=8",)),
            Tool(line="kafka-configs --entity-type brokers --entity-default --alter "
                      "--add-config log.retention.ms=86400000",
                 shows=("Completed updating default config for brokers in the cluster.",)),
            Tool(line="kafka-configs --entity-type brokers --entity-default --describe",
                 shows=("log.retention.ms=86400000",)),
            Tool(line="kafka-configs --entity-type brokers --entity-default --alter "
                      "--delete-config log.retention.ms"),
            Tool(line="kafka-configs --entity-type brokers --entity-name 1 --alter "
                      "--delete-config background.threads"),
            Tool(line="kafka-configs --entity-type brokers --entity-name 1 --describe", count=1),
        ),
    ),
    Lab(
        name="min-insync",
        about="min.insync.replicas refuses writes while too few replicas are in sync",
        steps=(
            Tool(line="kafka-topics --create --topic safe --partitions 1 --replication-factor 3 "
                      "--config min.insync.replicas=3"),
            Tool(line=SEND, stdin="three replicas\n"),
            StopBroker(broker=3),
            Tool(line="kafka-topics --describe --topic safe", until=True,
                 shows=("Isr: <2 brokers>",)),
            Tool(line="kafka-topics --describe --under-min-isr-partitions --topic safe",
                 shows=("Isr: <2 brokers>",)),
            Tool(line="kafka-topics --describe --under-replicated-partitions --topic safe",
                 shows=("Isr: <2 brokers>",)),
            Tool(line=f"{SEND} {QUICK}", stdin="refused\n",
                 shows=("NOT_ENOUGH_REPLICAS",)),
            Tool(line="kafka-console-producer --topic safe --request-required-acks 1",
                 stdin="by the leader alone\n"),
            StartBrokers(),
            Tool(line="kafka-topics --describe --topic safe", until=True,
                 shows=("Isr: <3 brokers>",)),
            Tool(line=SEND, stdin="three again\n"),
            Tool(line="kafka-console-consumer --topic safe --from-beginning --timeout-ms 5000",
                 shows=("three replicas\nby the leader alone\nthree again",), count=3),
        ),
    ),
)  # fmt: skip
