"""Throughput of the log cleaner on a live partition, measured from outside the broker."""

from __future__ import annotations

import random
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from load_tools import Load

from urteil.chaos.waiting import until
from urteil.harness.scenario import ClusterSpec

SPEC = ClusterSpec(
    brokers=1, config={"log.cleaner.backoff.ms": "100", "log.cleaner.enable": "true"}
)
TOPIC = "compacted"
RECORDS = 200_000
KEYS = 20_000
VALUE_BYTES = 1000
CLEANED_DEADLINE_S = 300
POLL_S = 0.02
ROWS = {"cleaner_mb_per_s": "log cleaner, 1 KB records, 10 a key (MB/s)"}


def measure(load: Load, scale: float) -> dict[str, float]:
    """Fill a topic whose cleaning is disabled, enable it, and wait for the checkpoint."""
    config = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "1.0",
        "segment.bytes": str(50_000_000),
    }
    load.create(TOPIC, 1, 1, config)
    bootstrap = ",".join(load.cluster.bootstrap)
    _fill(bootstrap, int(RECORDS * scale))
    folder = load.cluster.data_dirs()[1]
    sealed = sorted((folder / f"{TOPIC}-0").glob("*.log"))[:-1]
    size = sum(path.stat().st_size for path in sealed)
    if not size:
        raise ValueError(f"--scale {scale} is too small: nothing but the active segment")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    began = time.monotonic()
    _allow(admin)
    _await_checkpoint(folder, TOPIC)
    return {"cleaner_mb_per_s": size / (time.monotonic() - began) / 1e6}


def _fill(bootstrap: str, records: int) -> None:
    rng = random.Random(1)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 20})
    for number in range(records):
        value = rng.randbytes(VALUE_BYTES)
        while True:
            try:
                producer.produce(TOPIC, key=b"%d" % (number % KEYS), value=value)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(60):
        raise TimeoutError("not everything was produced in 60 s")


def _allow(admin: AdminClient) -> None:
    entry = ConfigEntry(
        "min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def _await_checkpoint(folder: Path, topic: str) -> None:
    """Wait until the cleaner's checkpoint contains the partition."""
    checkpoint = folder / "cleaner-offset-checkpoint"

    def is_cleaned() -> bool:
        lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
        return any(line.split()[0] == topic and int(line.split()[2]) > 0 for line in lines)

    if not until(is_cleaned, deadline_s=CLEANED_DEADLINE_S, poll_s=POLL_S):
        raise TimeoutError(f"not cleaned after {CLEANED_DEADLINE_S} s")
