"""Partitions moved, leaders elected, records deleted; log directories and transactions listed."""

from __future__ import annotations

from urteil.suites.courses.lab import File, Lab, Tool

PLAN = (
    '{"version":1,"partitions":['
    '{"topic":"moved","partition":0,"replicas":[2,3]},'
    '{"topic":"moved","partition":1,"replicas":[3,1]}]}'
)
MOVE = "kafka-reassign-partitions --reassignment-json-file $folder/plan.json"
LABS = (
    Lab(
        name="moves",
        about="partitions moved, leaders elected, records deleted",
        steps=(
            Tool(line="kafka-topics --create --topic moved --replica-assignment 1:2,2:3"),
            Tool(line="kafka-console-producer --topic moved --property parse.key=true "
                      "--property key.separator=:", stdin="a:1\nb:2\nc:3\nd:4\n"),
            File(name="topics.json", text='{"version":1,"topics":[{"topic":"moved"}]}'),
            Tool(line="kafka-reassign-partitions --generate --broker-list 1,2,3 "
                      "--topics-to-move-json-file $folder/topics.json",
                 shows=("Proposed partition reassignment configuration",),
                 differs="the proposal begins at a random broker"),
            File(name="plan.json", text=PLAN),
            Tool(line=f"{MOVE} --execute", is_ordered=False,
                 shows=("Successfully started partition reassignments for moved-0,moved-1",)),
            Tool(line=f"{MOVE} --verify", until=True, is_ordered=False,
                 shows=("Reassignment of partition moved-0 is completed.",
                        "Reassignment of partition moved-1 is completed.")),
            Tool(line="kafka-reassign-partitions --list", shows=("No partition reassignments",)),
            Tool(line="kafka-leader-election --election-type preferred --topic moved "
                      "--partition 0", shows=("moved-0",)),
            Tool(line="kafka-leader-election --election-type preferred --all-topic-partitions",
                 differs="which partitions lack their preferred leader depends on placement"),
            Tool(line="kafka-topics --describe --topic moved",
                 shows=("PartitionCount: 2 ReplicationFactor: 2",)),
            File(name="delete.json",
                 text='{"version":1,"partitions":[{"topic":"moved","partition":1,"offset":1}]}'),
            Tool(line="kafka-delete-records --offset-json-file $folder/delete.json",
                 shows=("partition: moved-1 low_watermark: 1",)),
            Tool(line="kafka-get-offsets --topic moved --time earliest", shows=("moved:1:1",)),
            Tool(line="kafka-log-dirs --describe --broker-list 1 --topic-list moved",
                 shows=('"partition":"moved-1"',)),
            Tool(line="kafka-transactions list", count=1),
            Tool(line="kafka-verifiable-producer --topic moved --max-messages 3",
                 is_ordered=False, shows=('"sent":3,"acked":3',),
                 differs="partitions are chosen by load, and throughput is measured"),
        ),
    ),
)  # fmt: skip
