"""Six brokers in two racks: ten partitions of three replicas, in both racks each."""

from __future__ import annotations

from urteil.suites.courses.lab import LIKE_KAFKA, Lab, LabCluster, Tool

SIX = LabCluster(
    name="six",
    brokers=6,
    racks=("east", "east", "east", "west", "west", "west"),
    settings=LIKE_KAFKA,
)
LABS = (
    Lab(
        name="racks",
        about="6 brokers in 2 racks, 10 partitions, 3 replicas, placed in both racks",
        cluster=SIX,
        steps=(
            Tool(line="zookeeper-shell ls /brokers/ids", shows=("[1, 2, 3, 4, 5, 6]",)),
            Tool(line="zookeeper-shell get /brokers/ids/6", shows=('"rack":"west"',)),
            Tool(line="kafka-topics --create --topic wide --partitions 10 --replication-factor 3",
                 shows=("Created topic wide.",)),
            Tool(line="kafka-topics --describe --topic wide", both_racks=True, count=11,
                 shows=("PartitionCount: 10 ReplicationFactor: 3",)),
            Tool(line="kafka-topics --zookeeper --create --topic wide-2.8 --partitions 10 "
                      "--replication-factor 3", release="2.8.0"),
            Tool(line="kafka-topics --describe --topic wide-2.8", both_racks=True, until=True,
                 count=11, shows=("PartitionCount: 10 ReplicationFactor: 3",)),
        ),
    ),
)  # fmt: skip
