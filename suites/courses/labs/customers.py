"""12,434 customers over three partitions, read once each by a group of two."""

from __future__ import annotations

from urteil.suites.courses.lab import Begin, End, Lab, Tool

COUNT = 12_434
CUSTOMERS = "".join(f"{n}:customer {n}\n" for n in range(COUNT))
READER = "kafka-console-consumer --topic customers --group shop --from-beginning"
LABS = (
    Lab(
        name="customers",
        about="12,434 customers over 3 partitions, read by a group of two, each once",
        steps=(
            Tool(line="kafka-topics --create --topic customers --partitions 3 "
                      "--replication-factor 3"),
            Begin(name="first", line=READER),
            Begin(name="second", line=READER),
            Tool(line="kafka-consumer-groups --describe --group shop --members", until=True,
                 shows=("console-consumer 1", "console-consumer 2"), is_ordered=False),
            Tool(line="kafka-console-producer --topic customers --producer-property acks=all "
                      "--property parse.key=true --property key.separator=:", stdin=CUSTOMERS),
            End(names=("first", "second"), count=COUNT),
            Tool(line="kafka-consumer-groups --describe --group shop", until=True,
                 shows=("shop customers 0", " 0 - - -"), is_ordered=False),
            Tool(line="kafka-get-offsets --topic customers", count=3),
        ),
    ),
)  # fmt: skip
