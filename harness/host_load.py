"""Host load during a run: one row of `samples` a second, with source `lab` or a host's name.

Deadlines assume a machine with free processors. Where far more tasks are runnable than there are
processors, the machine may be late instead of the cluster, and judgement excuses it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Row = dict[str, Any]
METRIC, SOURCE = "runnable_per_processor", "lab"
LOOK_S, LOOKS = 0.1, 10
"""Seconds between two measurements, and measurements a row."""
_LOADAVG = Path("/proc/loadavg")


def measure_load() -> float | None:
    """Runnable tasks a processor of this machine. None where the system does not report them."""
    try:
        running = _LOADAVG.read_text().split()[3].split("/")[0]
        return int(running) / (os.cpu_count() or 1)
    except (OSError, IndexError, ValueError):
        return None


@contextmanager
def record_host_load(run_dir: Path, run: str) -> Iterator[list[Row]]:
    """Measure while the block runs, which may read the rows so far. They become evidence
    afterwards."""
    from urteil.harness.evidence.table_writer import Evidence  # agents of hosts do not need it

    rows: list[Row] = []
    ended = threading.Event()
    thread = threading.Thread(target=watch_load, args=(rows, ended), name="host load", daemon=True)
    thread.start()
    try:
        yield rows
    finally:
        ended.set()
        thread.join()
        with Evidence(run_dir, SOURCE, run) as evidence:
            for row in rows:
                evidence.add("samples", row)


def watch_load(rows: list[Row], ended: threading.Event) -> None:
    """Append a row a second, until the event."""
    loads: list[float] = []
    while not ended.wait(LOOK_S):
        load = measure_load()
        if load is None:
            return
        loads.append(load)
        if len(loads) == LOOKS:
            constant = {"source": SOURCE, "metric": METRIC, "labels": "{}"}
            rows.append(constant | {"at_ns": time.monotonic_ns(), "value": sum(loads) / LOOKS})
            loads = []
