"""Apache Kafka's DumpLogSegments reads the broker's files without a complaint."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.log.helpers import NOW_MS, append, batch, end_txn, open_log, read_all
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.harness.dependencies.kafka import kafka_tool

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
    _fill_recompressed(log)


def _fill_recompressed(log: PartitionLog) -> None:
    """Batches that the leader wrote anew, larger than a block of their codec."""
    lines = [b"line %d of a text that can be compressed" % (number % 50) for number in range(2000)]
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        log.config = replace(
            log.config, compression_type=codec, message_timestamp_type="LogAppendTime"
        )
        append(log, batch(lines, timestamp_ms=NOW_MS + 2000), epoch=4)


Values = list[bytes]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[PartitionLog, Values]:
    """A closed log of several segments, with every kind of file, and the values in it."""
    config = LogConfig(segment_bytes=20_000, index_interval_bytes=1000)
    log = open_log(tmp_path_factory.mktemp("log"), config=config)
    _fill(log)
    held = [value for _, value in read_all(log) if value is not None]
    log.close()
    assert len(log.segments) > 2
    return log, held


@pytest.fixture
def log(filled: tuple[PartitionLog, Values]) -> PartitionLog:
    return filled[0]


def dump(files: list[Path], *options: str) -> list[str]:
    """What the tool says of them, without a complaint."""
    command = kafka_tool(
        "kafka.tools.DumpLogSegments",
        [*options, "--files", ",".join(str(path) for path in files)],
    )
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    lines = (run.stdout + run.stderr).splitlines()
    assert [line for line in lines if COMPLAINTS.search(line)] == []
    dumped = {Path(line.split()[-1]).name for line in lines if line.startswith("Dumping ")}
    assert dumped == {path.name for path in files}
    return lines


def files_of(log: PartitionLog, *kinds: str) -> list[Path]:
    files = sorted(path for path in log.directory.iterdir() if path.suffix in kinds)
    assert {path.suffix for path in files} == set(kinds)
    return files


def test_dump_log_segments_reads_every_file(filled: tuple[PartitionLog, Values]) -> None:
    log, held = filled
    files = files_of(log, ".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    lines = dump(files, "--deep-iteration", "--print-data-log")
    last = f"lastOffset: {log.log_end_offset - 1} "
    assert any(last in line for line in lines)
    dumped_values = [line.split(" payload: ")[1] for line in lines if " payload: " in line]
    assert len(held) > 300
    texts = (value.decode() for value in held if value.isascii())
    values = [text for text in texts if text.isprintable()]  # markers are not printed
    assert dumped_values == values


def test_kafka_finds_the_indexes_sane(log: PartitionLog) -> None:
    files = files_of(log, ".index", ".timeindex")
    lines = dump(files, "--index-sanity-check")
    sane = [line for line in lines if "passed sanity" in line or line.endswith("is empty.")]
    assert len(sane) == len(files)


def test_index_entries_point_to_their_batches(log: PartitionLog) -> None:
    dump(files_of(log, ".index", ".timeindex"), "--verify-index-only")
