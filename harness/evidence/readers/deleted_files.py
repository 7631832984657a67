"""Files marked for deletion that were still on a broker's disk when it ended.

Kafka renames the folder of a deleted replica to `...-delete` at once, and the files of a deleted
segment to `....deleted`; both are removed after a delay. A rename changes the file's ctime, and the
marker of a clean stop has the time of the broker's end. Both come from the file system's clock,
which no fault moves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
METRIC = "set_aside_s"
CLEAN_STOP = ".kafka_cleanshutdown"
GONE_FOLDER, GONE_FILE = "-delete", ".deleted"


def read_deleted_files(broker: int, log_dir: Path, at_ns: int) -> Iterator[Row]:
    """Rows of `samples`, one for each folder or file: the seconds from its rename to the end of the
    broker. None for a broker without a clean stop."""
    marker = log_dir / CLEAN_STOP
    if not marker.exists():
        return
    ended_s = marker.stat().st_ctime
    folders = sorted(path for path in log_dir.iterdir() if path.is_dir())
    for folder in folders:
        left = [folder] if folder.name.endswith(GONE_FOLDER) else folder.glob(f"*{GONE_FILE}")
        for path in sorted(left):
            yield {
                "at_ns": at_ns,
                "source": f"b{broker}",
                "metric": METRIC,
                "labels": json.dumps({"path": str(path.relative_to(log_dir))}),
                "value": ended_s - path.stat().st_ctime,
            }
