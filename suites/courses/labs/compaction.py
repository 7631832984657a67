"""employee-salary: a compacted topic, and what its segments hold."""

from __future__ import annotations

from urteil.suites.courses.lab import Lab, Tool

PRODUCE = (
    "kafka-console-producer --topic employee-salary "
    "--property parse.key=true --property key.separator=,"
)
READ = (
    "kafka-console-consumer --topic employee-salary --from-beginning "
    "--property print.key=true --property key.separator=,"
)
SEND = (
    "kafka-console-producer --topic segments --sync --producer-property linger.ms=0 "
    "--property parse.key=true --property key.separator=:"
)
SEGMENT = "$log1/employee-salary-0/00000000000000000000.log"
LABS = (
    Lab(
        name="compaction",
        about="employee-salary compacted: the last salary of each key is left",
        steps=(
            Tool(line="kafka-topics --create --topic employee-salary --partitions 1 "
                      "--replication-factor 3 --config cleanup.policy=compact "
                      "--config min.cleanable.dirty.ratio=0.001 --config segment.ms=300",
                 shows=("Created topic employee-salary.",)),
            Tool(line="kafka-topics --describe --topic employee-salary",
                 shows=("cleanup.policy=compact",)),
            Tool(line=PRODUCE, stdin="Mark,salary: 1000\nLucy,salary: 2000\nBob,salary: 1500\n"
                                     "Patrick,salary: 500\n"),
            Tool(line=f"{READ} --max-messages 4",
                 shows=("Mark,salary: 1000\nLucy,salary: 2000\nBob,salary: 1500",)),
            Tool(line=PRODUCE, stdin="Lucy,salary: 2200\nPatrick,salary: 900\n"),
            Tool(line=f"{READ} --max-messages 6", shows=("Lucy,salary: 2200",)),
            Tool(line=PRODUCE, stdin="Mark,salary: 1100\n"),
            Tool(line=PRODUCE, stdin="Stephane,salary: 0\n"),
            Tool(line=f"{READ} --timeout-ms 3000", until=True, count=5,
                 shows=("Bob,salary: 1500\nLucy,salary: 2200\nPatrick,salary: 900\n"
                        "Mark,salary: 1100\nStephane,salary: 0",)),
            Tool(line="kafka-get-offsets --topic employee-salary", shows=("employee-salary:0:8",)),
            Tool(line=f"kafka-dump-log --print-data-log --files {SEGMENT}", until=True,
                 shows=("tarting offset: 0", "key: Bob payload: salary: 1500")),
        ),
    ),
    Lab(
        name="dump-log",
        about="records, batches and indexes of a segment",
        steps=(
            Tool(line="kafka-topics --create --topic segments --replica-assignment 1 "
                      "--config index.interval.bytes=1 --config segment.ms=2000"),
            Tool(line=SEND, stdin="a:one\nb:two\nc:three\n"),
            Tool(line="kafka-get-offsets --topic segments", shows=("segments:0:3",)),
            Tool(line=SEND, stdin="d:four, and the first segment is closed\n"),
            Tool(line="kafka-dump-log --files $log1/segments-0/00000000000000000000.log "
                      "--print-data-log", until=True,
                 shows=("baseOffset: 2", "key: c payload: three")),
            Tool(line="kafka-dump-log --files $log1/segments-0/00000000000000000000.log "
                      "--deep-iteration", shows=("baseOffset: 0", "isvalid: true")),
            Tool(line="kafka-dump-log --files $log1/segments-0/00000000000000000000.index",
                 shows=("Dumping <folder>/segments-0/00000000000000000000.index", "offset: 2")),
            Tool(line="kafka-dump-log --files $log1/segments-0/00000000000000000000.log "
                      "--print-data-log", release="2.8.0", shows=("payload: three",)),
        ),
    ),
)  # fmt: skip
