"""What brokers had set aside for deletion and still had on their disks when they ended.

A folder of a replica that goes is renamed `...-delete` at once, a segment's files `....deleted`,
and both are removed after a delay. A rename changes the file's ctime, and the marker of a clean
stop tells when the broker ended: both by the file system's clock, which no fault moves.
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


def leftovers(broker: int, log_dir: Path, at_ns: int) -> Iterator[Row]:
    """Rows of `samples`, one for each folder or file: for how many seconds it had been set aside
    when its broker ended. None of a log directory whose broker did not end by itself."""
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
