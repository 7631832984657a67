"""Console producer and consumer: acks, keys, topics that the first record creates."""

from __future__ import annotations

from urteil.suites.courses.lab import Lab, Tool

KEYED = "--property parse.key=true --property key.separator=:"
SHOWN = "--property print.key=true --property key.separator=:"
LABS = (
    Lab(
        name="console",
        about="console producer with acks and keys, console consumer",
        steps=(
            Tool(line="kafka-topics --create --topic letters --partitions 3 "
                      "--replication-factor 3", shows=("Created topic letters.",)),
            Tool(line="kafka-console-producer --topic letters", stdin="Hello World\n"),
            Tool(line="kafka-console-producer --topic letters --producer-property acks=all",
                 stdin="some message that is acked\njust for fun\nfun learning!\n"),
            Tool(line="kafka-console-consumer --topic letters --from-beginning --max-messages 4",
                 is_ordered=False, count=4, shows=("Hello World", "fun learning!")),
            Tool(line="kafka-topics --create --topic users --partitions 3"),
            Tool(line=f"kafka-console-producer --topic users {KEYED}",
                 stdin="1:Alice\n2:Bob\n3:Carol\n1:Alicia\n"),
            Tool(line=f"kafka-console-producer --topic users {KEYED}", stdin="no separator\n",
                 exit_code=1, shows=("No key separator found on line number 1",)),
            Tool(line=f"kafka-console-consumer --topic users --from-beginning --max-messages 4 "
                      f"{SHOWN} --property print.partition=true --property print.offset=true",
                 is_ordered=False, count=4, shows=("1:Alicia", "Partition:")),
            Tool(line="kafka-console-consumer --topic users --from-beginning --max-messages 4 "
                      "--property print.timestamp=true", is_ordered=False,
                 shows=("CreateTime:<time> Alice",)),
            Tool(line="kafka-console-consumer --topic users --partition 0 --offset earliest "
                      "--timeout-ms 4000"),
            Tool(line="kafka-get-offsets --topic users", shows=("users:0:",)),
            Tool(line="kafka-get-offsets --topic users --time earliest", shows=("users:0:0",)),
        ),
    ),
    Lab(
        name="auto-created",
        about="a topic that the first record creates, with `num.partitions` of the brokers",
        steps=(
            Tool(line="kafka-console-producer --topic new_topic", stdin="hello!\n"),
            Tool(line="kafka-topics --describe --topic new_topic",
                 shows=("PartitionCount: 3 ReplicationFactor: 1",)),
            Tool(line="kafka-console-consumer --topic new_topic --from-beginning --max-messages 1",
                 shows=("hello!",)),
            Tool(line="kafka-console-producer --topic 'bad name' "
                      "--producer-property max.block.ms=3000", stdin="hello!\n"),
            Tool(line="kafka-topics --list --topic 'bad.*'", count=0),
        ),
    ),
)  # fmt: skip
