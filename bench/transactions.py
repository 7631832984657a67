"""Transactions of librdkafka's producers, of 1, 10 and 100 records each."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Producer
from load_tools import Load

PRODUCERS = 4
PARTITIONS = 3
SECONDS = 10.0
WARM_UP_S = 2.0
RECORD = b"r" * 100
CALL_S = 30.0
SIZES = (1, 10, 100)
ROWS = {
    "txn_1_per_s": "transactions of 1 record, 4 producers (transactions/s)",
    "txn_10_per_s": "transactions of 10 records, 4 producers (transactions/s)",
    "txn_100_per_s": "transactions of 100 records, 4 producers (transactions/s)",
    "commit_p99_ms": "p99 of a commit, 10 records of 100 bytes, 4 producers (ms)",
}


def measure(load: Load, scale: float) -> dict[str, float]:
    """Measure through the clients' addresses, with a proxy before each broker. The time of a commit
    is that of `commit_transaction` after the acknowledgement of all its records."""
    load.create("bank", PARTITIONS, 3)
    figures: dict[str, float] = {}
    bootstrap = ",".join(load.cluster.bootstrap)
    for size in SIZES:
        took = _measure_together(bootstrap, size, max(WARM_UP_S, SECONDS * scale))
        figures[f"txn_{size}_per_s"] = sum(len(times) / whole_s for times, whole_s in took)
        if size == 10:
            commits_s = [seconds for times, _ in took for seconds in times]
            figures["commit_p99_ms"] = statistics.quantiles(commits_s, n=100)[98] * 1000
    return figures


def _measure_together(bootstrap: str, size: int, seconds: float) -> list[tuple[list[float], float]]:
    """Of each producer, the seconds of its commits and its total seconds."""
    producers = [_producer(bootstrap, f"bench-{size}-{number}") for number in range(PRODUCERS)]
    with ThreadPoolExecutor(PRODUCERS) as pool:
        list(pool.map(lambda producer: _run(producer, size, WARM_UP_S), producers))
        return list(pool.map(lambda producer: _run(producer, size, seconds), producers))


def _producer(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 0}
    )
    producer.init_transactions(CALL_S)
    return producer


def _run(producer: Producer, size: int, seconds: float) -> tuple[list[float], float]:
    began, commits_s = time.monotonic(), []
    while time.monotonic() - began < seconds:
        producer.begin_transaction()
        for number in range(size):
            producer.produce("bank", RECORD, partition=number % PARTITIONS)
        producer.flush(CALL_S)
        begin_s = time.monotonic()
        producer.commit_transaction(CALL_S)
        commits_s.append(time.monotonic() - begin_s)
    return commits_s, time.monotonic() - began
