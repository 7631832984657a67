"""Apache Kafka's reader of log files, over folders of other releases that ours recovered, compacted
and split: it reads the records that ours serves, and has nothing to complain of."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

from tests.broker.log.cleaner.helpers import COMPACTED, clean
from tests.broker.log.helpers import append, batch, open_log
from tests.broker.log.old_folders import FAR, OldLog, Row, old_messages
from tests.broker.log.test_kafka_tools import COMPLAINTS
from tests.broker.log.test_odd_files import whole_log
from tests.broker.log.test_old_folders import rows_of
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.recovery import CheckpointedState
from urteil.harness.dependencies.kafka import kafka_tool

KINDS = (".log", ".index", ".timeindex", ".snapshot")
GAPS = "Non-consecutive offsets"
_RECORD = re.compile(r"\| offset: (\d+) ")
NEW = [b"new"]


def dumped(*folders: Path) -> dict[str, dict[int, str]]:
    """What the tool says of each record, by folder and offset; no complaint, but for offsets that
    the folder's writer left out."""
    files = [
        path for folder in folders for path in sorted(folder.iterdir()) if path.suffix in KINDS
    ]
    command = kafka_tool(
        "kafka.tools.DumpLogSegments",
        ["--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files))],
    )
    run = subprocess.run(command, capture_output=True, timeout=120)
    lines = (run.stdout + run.stderr).decode("utf-8", "replace").splitlines()
    assert run.returncode == 0, lines
    complaints = [line for line in lines if COMPLAINTS.search(line)]
    assert [line for line in complaints if not line.startswith(GAPS)] == []
    dumped_lines: dict[str, dict[int, str]] = {folder.name: {} for folder in folders}
    folder = ""
    for line in lines:
        if line.startswith("Dumping "):
            folder = Path(line.split()[-1]).parent.name
        elif match := _RECORD.match(line):
            assert int(match[1]) not in dumped_lines[folder]
            dumped_lines[folder][int(match[1])] = line
    return dumped_lines


def recovered(folder: Path, old: OldLog, config: LogConfig | None = None) -> PartitionLog:
    """The folder as ours leaves it after a crash and a write."""
    old.write(folder)
    for kind in (".index", ".timeindex"):
        for path in folder.glob(f"*{kind}"):
            path.unlink()
    remembered = CheckpointedState(clean=False)
    log = open_log(
        folder, config=config or LogConfig(index_interval_bytes=100), remembered=remembered
    )
    log.update_high_watermark(append(log, batch(NEW)).base_offset + 1)
    return log


def split(folder: Path) -> tuple[PartitionLog, list[Row]]:
    """A segment of magic 1 whose offsets leap by more than a segment can hold."""
    rows = [Row(at, 1000, b"k", b"v") for at in (0, 5, FAR, FAR + 1)]
    (folder / f"{0:020d}.log").write_bytes(old_messages(1, 0, rows))
    log = open_log(folder, remembered=CheckpointedState(clean=False))
    return log, rows


def test_kafka_dumps_old_folders_as_ours_serves_them(tmp_path: Path) -> None:
    old = whole_log(0, 1, 2)
    for name in ("recovered", "compacted", "split"):
        (tmp_path / name).mkdir()
    old.write(tmp_path / "original")
    first = recovered(tmp_path / "recovered", old)
    other = recovered(tmp_path / "compacted", old, replace(COMPACTED, segment_bytes=1 << 20))
    clean(other)
    third, rows = split(tmp_path / "split")
    end = first.log_end_offset
    left = [row.offset for row in rows_of(other, old.rows)]
    for log in (first, other, third):
        log.close()
    dumps = dumped(*(tmp_path / name for name in ("original", "recovered", "compacted", "split")))
    original = dumps["original"]
    assert list(original) == [row.offset for row in old.rows]
    assert dumps["recovered"] == original | {end - 1: dumps["recovered"][end - 1]}
    assert list(dumps["compacted"]) == [*left, end - 1]
    assert {at: dumps["compacted"][at] for at in left}.items() < original.items()
    assert list(dumps["split"]) == [row.offset for row in rows]
