"""Apache Kafka's own reader of log files has nothing to complain of."""

import re
import subprocess
from pathlib import Path

from tests.broker.log.helpers import NOW_MS, append, batch, end_txn, open_log
from urteil.broker.log.config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.harness.parts.kafka import kafka_tool

COMPLAINTS = re.compile(
    r"mismatch|not found|out of order|corrupt|invalid|exception|non-consecutive|isvalid: false",
    re.IGNORECASE,
)


def _fill(log: PartitionLog) -> None:
    sequence = 0
    for number in range(120):
        values = [b"%d" % number] * (number % 5 + 1)
        data = batch(
            values,
            producer=(7, 0, sequence),
            timestamp_ms=NOW_MS + number * 7 % 100,
            transactional=True,
            compression=number % 2,
        )
        sequence += len(values)
        append(log, data, epoch=number // 60)
        if number % 3 == 0:
            append(log, batch([b"x" * 300] * 3, timestamp_ms=NOW_MS + number), epoch=number // 60)
        if number % 20 == 19:
            end_txn(log, 7, commit=number % 40 == 19)
    log.truncate_to(log.log_end_offset - 30)
    for number in range(40):
        data = batch([b"z" * 200] * 2, timestamp_ms=NOW_MS + 1000 + number)
        append(log, data, epoch=4)


def test_dump_log_segments_reads_every_file(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(segment_bytes=20_000, index_interval_bytes=1000))
    _fill(log)
    log.close()
    assert len(log.segments) > 2
    kinds = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = sorted(path for path in tmp_path.iterdir() if path.suffix in kinds)
    assert {path.suffix for path in files} == set(kinds)
    command = kafka_tool(
        "kafka.tools.DumpLogSegments",
        ["--deep-iteration", "--files", ",".join(str(path) for path in files)],
    )
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    lines = (run.stdout + run.stderr).splitlines()
    assert [line for line in lines if COMPLAINTS.search(line)] == []
    dumped = {Path(line.split()[-1]).name for line in lines if line.startswith("Dumping ")}
    assert dumped == {path.name for path in files}
    last = f"lastOffset: {log.log_end_offset - 1} "
    assert any(last in line for line in lines)
