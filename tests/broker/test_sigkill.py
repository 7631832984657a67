"""SIGKILL at seeded instants, round after round, over a small cluster under load.

`--kill-rounds N` plays longer, `--kill-seed S` plays the same kills again. The page cache survives
a killed process: what was acknowledged must be there, with three replicas or with one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from tests.broker.nodes import Nodes
from tests.broker.traffic import Traffic, read_all
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.waiting import until

TOPICS = {"replicated": 3, "alone": 1}
PARTITIONS = 3
DEADLINE_S = 60.0
SEGMENT_BYTES = "65536"  # so that rolls, recovery points and snapshots are hit as well


@pytest.fixture
def nodes(tmp_path: Path, zookeeper: ZooKeeperServer, chroot: str) -> Iterator[Nodes]:
    config = {"min_insync_replicas": "2", "log_segment_bytes": SEGMENT_BYTES}
    with Nodes(tmp_path, zookeeper, chroot, 3, **config) as started:
        admin = KafkaAdminClient(bootstrap_servers=started.bootstrap)
        admin.create_topics(
            {
                topic: {"num_partitions": PARTITIONS, "replication_factor": replicas}
                for topic, replicas in TOPICS.items()
            }
        )
        admin.close()
        yield started


def play(nodes: Nodes, rng: random.Random, rounds: int) -> None:
    """Kill and restart one broker in each round: a serving one, or every fourth time the starting
    one, possibly during recovery."""
    starting: int | None = None
    for _ in range(rounds):
        broker = starting or rng.choice(sorted(nodes.ports))
        before = nodes.registration(broker)
        time.sleep(rng.uniform(0, 0.5 if starting else 0.2))
        nodes.kill(broker)
        nodes.start(broker)
        starting = broker if rng.random() < 0.25 else None
        if starting is None:
            await_up(nodes, broker, before)


def await_up(nodes: Nodes, broker: int, before: int | None) -> None:
    """Wait for registration, which follows the opening of all logs."""

    def registered() -> bool:
        assert nodes.processes[broker].poll() is None, nodes.log(broker).read_text()[-3000:]
        return nodes.registration(broker) not in (None, before)

    until(registered, f"broker {broker} registered anew", deadline_s=DEADLINE_S)


def is_whole(nodes: Nodes) -> bool:
    return all(
        len(state["isr"]) == replicas and state["leader"] > 0
        for topic, replicas in TOPICS.items()
        for state in (nodes.state(topic, index) for index in range(PARTITIONS))
    )


def replicas_of(folder: Path, partition: int) -> set[bytes]:
    """Return the contents of the replicas' logs; a single value if they agree."""
    return {
        b"".join(path.read_bytes() for path in sorted(data.glob("*.log")))
        for data in folder.glob(f"data*/replicated-{partition}")
    }


def test_sigkill_loses_no_acknowledged_record(
    nodes: Nodes, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    rounds, seed = (pytestconfig.getoption(name) for name in ("--kill-rounds", "--kill-seed"))
    seed = random.randrange(1_000_000) if seed is None else seed
    again = f"--kill-rounds {rounds} --kill-seed {seed}"
    print(again)
    with Traffic(
        nodes.bootstrap, list(TOPICS), pause_s=0.004, delivery_timeout_ms=300_000
    ) as traffic:
        traffic.await_more(100)
        play(nodes, random.Random(seed), rounds)
        until(
            lambda: is_whole(nodes), f"all replicas in sync again ({again})", deadline_s=DEADLINE_S
        )
        traffic.await_more(100)
    records = read_all(nodes.bootstrap, list(TOPICS), PARTITIONS)
    lost = {
        value: at for value, at in traffic.acknowledged.items() if at not in records.get(value, ())
    }
    assert lost == {}, again
    twice = {value: places for value, places in records.items() if len(places) > 1}
    assert twice == {}, again
    assert traffic.errors == {}, again
    for partition in range(PARTITIONS):
        until(
            lambda: len(replicas_of(tmp_path, partition)) == 1,  # noqa: B023
            f"replicas of partition {partition} are equal ({again})",
        )
    logs = "".join(nodes.log(broker).read_text() for broker in nodes.ports)
    assert "Traceback" not in logs, again
    print(f"{rounds} kills, {len(traffic.acknowledged)} records acknowledged")
