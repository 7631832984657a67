"""Apache Kafka's DumpLogSegments reads a cleaned log without a complaint."""

from __future__ import annotations

import re
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

from tests.broker.log.cleaner.helpers import COMPACTED, clean, put, records
from tests.broker.log.helpers import NOW_MS, open_log
from tests.broker.log.test_kafka_tools import COMPLAINTS
from urteil.broker.log.partition_log import PartitionLog
from urteil.harness.dependencies.kafka import kafka_tool

CONFIG = replace(COMPACTED, segment_bytes=9000)
KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
HOLES = re.compile("non-consecutive|Starting offset", re.IGNORECASE)
RECORD = re.compile(r"offset: (\d+) CreateTime: (\d+) keySize: .* key: (\S+)(?: payload: (\S*))?")


def _fill(log: PartitionLog) -> None:
    for n in range(200):
        put(
            log,
            (b"k%d" % (n % 23), b"v%d" % n),
            (b"u%d" % (n % 90), b"x" * 40 if n % 3 else None),
            timestamp_ms=NOW_MS + n * 31 % 500,
            compression=n % 5,
            leader_epoch=n // 50,
        )
        if n % 20 == 0:
            for sequence in (0, 1):
                put(log, (b"t", b"%d" % n), producer_id=n, producer_epoch=0,
                    base_sequence=sequence, transactional=True, leader_epoch=n // 50)  # fmt: skip
            marker = (struct.pack(">hh", 0, n // 20 % 2), struct.pack(">hi", 0, 0))
            put(log, marker, producer_id=n, producer_epoch=0, transactional=True, control=True,
                leader_epoch=n // 50)  # fmt: skip


def _dump(paths: list[Path], *options: str) -> list[str]:
    files = ",".join(str(path) for path in paths)
    command = kafka_tool("kafka.tools.DumpLogSegments", [*options, "--files", files])
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    lines = (run.stdout + run.stderr).splitlines()
    complaints = [line for line in lines if COMPLAINTS.search(line) and not HOLES.search(line)]
    # an emptied batch has a largest timestamp still, but no record that bears it: it is the same
    # in what Apache Kafka cleaned
    compared = [line for line in lines if "Index timestamp:" in line]
    if all(line.endswith("log timestamp: -1") for line in compared):
        complaints = [
            complaint for complaint in complaints if "timestamp mismatch" not in complaint
        ]
    assert complaints == []
    dumped = {Path(line.split()[-1]).name for line in lines if line.startswith("Dumping ")}
    assert dumped == {path.name for path in paths}
    return lines


def test_dump_log_segments_reads_a_cleaned_log(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=CONFIG)
    _fill(log)
    clean(log)
    expected = [
        (str(record.offset), str(record.timestamp_ms), (record.key or b"").decode(),
         record.value.decode() if record.value is not None else "")
        for record in records(log)
    ]  # fmt: skip
    assert 0 < len(expected) < 420
    log.close()
    files = sorted(path for path in tmp_path.iterdir() if path.suffix in KINDS)
    assert {path.suffix for path in files} == set(KINDS)
    lines = _dump(files, "--deep-iteration", "--print-data-log")
    shown = [match.groups("") for line in lines if (match := RECORD.search(line))]
    assert [row for row in shown if not row[2].startswith("endTxn")] == expected
    indexes = [path for path in files if path.suffix == ".index"]
    passed = [line for line in _dump(indexes, "--index-sanity-check") if "passed" in line]
    assert len(passed) == len(indexes)
