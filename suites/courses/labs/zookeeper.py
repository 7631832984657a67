"""What ZooKeeper holds: brokers with their listeners, the controller, while brokers stop."""

from __future__ import annotations

from urteil.suites.courses.lab import Lab, StartBrokers, StopBroker, Tool

LABS = (
    Lab(
        name="zookeeper",
        about="brokers and the controller in ZooKeeper while brokers stop and start",
        steps=(
            Tool(line="zookeeper-shell ls /", shows=("brokers", "controller")),
            Tool(line="zookeeper-shell ls /brokers/ids", shows=("[1, 2, 3]",)),
            Tool(line="zookeeper-shell get /brokers/ids/1", shows=('"version":5',)),
            Tool(line="zookeeper-shell get /controller", shows=('"brokerid":<broker>',)),
            Tool(line="kafka-topics --create --topic survives --partitions 1 "
                      "--replication-factor 3"),
            Tool(line="kafka-console-producer --topic survives", stdin="before\n"),
            Tool(line="zookeeper-shell ls /brokers/topics/survives/partitions", shows=("[0]",)),
            StopBroker(broker=1),
            Tool(line="zookeeper-shell ls /brokers/ids", until=True, shows=("[2, 3]",)),
            Tool(line="zookeeper-shell get /controller", until=True,
                 shows=('"brokerid":<broker>',)),
            Tool(line="kafka-topics --describe --topic survives", until=True,
                 shows=("Isr: <2 brokers>",)),
            StopBroker(broker=2),
            Tool(line="zookeeper-shell ls /brokers/ids", until=True, shows=("[3]",)),
            Tool(line="kafka-topics --describe --topic survives", until=True,
                 shows=("Isr: <1 brokers>",)),
            Tool(line="kafka-console-producer --topic survives", stdin="with one broker\n"),
            Tool(line="kafka-topics --describe --topic survives --unavailable-partitions", count=0),
            StartBrokers(),
            Tool(line="zookeeper-shell ls /brokers/ids", until=True, shows=("[1, 2, 3]",)),
            Tool(line="kafka-topics --describe --topic survives", until=True,
                 shows=("Isr: <3 brokers>",)),
            Tool(line="kafka-console-consumer --topic survives --from-beginning --max-messages 2",
                 shows=("before\nwith one broker",)),
            Tool(line="kafka-broker-api-versions", is_ordered=False, shows=("Produce(0)",)),
        ),
    ),
)  # fmt: skip
