"""Advertised listeners: brokers name an address to clients, and clients connect to that one."""

from __future__ import annotations

from urteil.suites.courses.lab import Advertise, Lab, StartBrokers, StopBroker, Tool

SEND = (
    "kafka-console-producer --topic far --producer-property delivery.timeout.ms=4000 "
    "--producer-property request.timeout.ms=3000 --producer-property linger.ms=0"
)
LABS = (
    Lab(
        name="listeners",
        about="advertised.listeners: a wrong address leaves a broker without clients",
        steps=(
            Tool(line="zookeeper-shell get /brokers/ids/1", shows=('"endpoints":["CLIENT:',)),
            Tool(line="kafka-topics --create --topic far --replica-assignment 1",
                 shows=("Created topic far.",)),
            Tool(line=SEND, stdin="near\n"),
            StopBroker(broker=1),
            Advertise(broker=1, address="127.0.0.1:9"),
            StartBrokers(),
            Tool(line="zookeeper-shell get /brokers/ids/1", shows=('"endpoints":["CLIENT:',)),
            Tool(line="kafka-topics --describe --topic far", until=True,
                 shows=("Leader: <broker> Replicas: <1 brokers> Isr: <1 brokers>",)),
            Tool(line=SEND, stdin="to a port without a listener\n",
                 shows=("Expiring 1 record(s) for far-0",)),
            Tool(line="kafka-console-consumer --topic far --from-beginning --timeout-ms 5000",
                 count=0),
            StopBroker(broker=1),
            Advertise(broker=1, address="$listener1"),
            StartBrokers(),
            Tool(line=SEND, stdin="near again\n"),
            Tool(line="kafka-console-consumer --topic far --from-beginning --max-messages 2",
                 shows=("near\nnear again",)),
            Tool(line="kafka-console-consumer --topic far --bootstrap-server $listener1 "
                      "--from-beginning --max-messages 2", shows=("near\nnear again",)),
        ),
    ),
)  # fmt: skip
