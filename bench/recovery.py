"""Start of a broker with a log of 1 GB: after SIGKILL, and after a clean stop."""

from __future__ import annotations

import time

from load_tools import Load

from urteil.chaos.waiting import until
from urteil.harness.scenario import ClusterSpec

SPEC = ClusterSpec(
    brokers=1, config={"log.flush.offset.checkpoint.interval.ms": str(24 * 3_600_000)}
)
RECORDS = 100_000
RECORD_BYTES = 10_000
READY_DEADLINE_S = 300
ROWS = {
    "reopen_s": "start after a clean stop, the same log (s)",
    "recovery_s": "start after SIGKILL, 1 GB to recover (s)",
}


def measure(load: Load, _scale: float) -> dict[str, float]:
    """The time from the start of the process until the cluster is healthy and its one partition has
    a leader; the log has 1 GB at any scale."""
    load.create("large", 1, 1, {"segment.bytes": "1073741824"})
    load.produce("large", acks="all", records=RECORDS, size=RECORD_BYTES)
    load.cluster.controls().kill("b1")
    figures = {"recovery_s": _start(load)}
    load.cluster.controls().stop("b1", deadline_s=60)
    return {"reopen_s": _start(load), **figures}


def _start(load: Load) -> float:
    controls = load.cluster.controls()
    # Apache Kafka would not start before its session has ended
    if not until(lambda: not controls.registered_brokers(), deadline_s=READY_DEADLINE_S):
        raise TimeoutError("the broker that ended is still registered")
    began = time.monotonic()
    controls.start("b1")
    load.cluster.await_healthy(deadline_s=READY_DEADLINE_S)
    return time.monotonic() - began
