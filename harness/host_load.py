"""How crowded this machine is while a run is played: a row of `samples` a second, source `lab`.

Deadlines are for a machine that is the cluster's own: where far more tasks want a processor than
there are, it may be the machine that is late, and nobody is accused of it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from urteil.harness.evidence.journal_rows import Row
from urteil.harness.evidence.table_writer import Evidence

METRIC, SOURCE = "runnable_per_processor", "lab"
LOOK_S, LOOKS = 0.1, 10
"""Between two looks, and how many of them make a row."""
_LOADAVG = Path("/proc/loadavg")


def runnable() -> float | None:
    """Tasks that run or want to, a processor of this machine; None where nobody tells."""
    try:
        running = _LOADAVG.read_text().split()[3].split("/")[0]
        return int(running) / (os.cpu_count() or 1)
    except (OSError, IndexError, ValueError):
        return None


@contextmanager
def watched(run_dir: Path, run: str) -> Iterator[list[Row]]:
    """Look while the block runs, which may read the rows so far; they are evidence afterwards."""
    rows: list[Row] = []
    ended = threading.Event()
    thread = threading.Thread(target=_watch, args=(rows, ended), name="host load", daemon=True)
    thread.start()
    try:
        yield rows
    finally:
        ended.set()
        thread.join()
        with Evidence(run_dir, SOURCE, run) as evidence:
            for row in rows:
                evidence.add("samples", row)


def _watch(rows: list[Row], ended: threading.Event) -> None:
    looks: list[float] = []
    while not ended.wait(LOOK_S):
        seen = runnable()
        if seen is None:
            return
        looks.append(seen)
        if len(looks) == LOOKS:
            told = {"source": SOURCE, "metric": METRIC, "labels": "{}"}
            rows.append(told | {"at_ns": time.monotonic_ns(), "value": sum(looks) / LOOKS})
            looks = []
