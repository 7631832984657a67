"""Thousands of connections with garbage to a real broker."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.broker.hostile_frames import garbage
from tests.broker.nodes import STEADY, Nodes
from tests.broker.zookeeper.server import ZooKeeperServer
from urteil.broker.api.registry import load_handlers

SEED = 20250901
AT_ONCE = 20


async def throw(port: int, data: bytes) -> None:
    """Send, close the sending side, and require that the broker closes the connection."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(data)
            writer.write_eof()
            async with asyncio.timeout(60):
                while await reader.read(1 << 16):
                    pass
        finally:
            writer.close()
    except ConnectionError:
        return


async def throw_all(port: int, count: int, rng: random.Random) -> None:
    frames = garbage(rng)
    left = asyncio.Semaphore(AT_ONCE)

    async def connect_and_send(data: bytes) -> None:
        async with left:
            await throw(port, data)

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(connect_and_send(next(frames)))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("connections", [2_000, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_garbage_closes_only_its_own_connection(
    tmp_path: Path, zookeeper: ZooKeeperServer, chroot: str, connections: int
) -> None:
    load_handlers()
    rng = random.Random(SEED)
    with Nodes(tmp_path, zookeeper, chroot, 1, **STEADY) as nodes:
        producer = KafkaProducer(bootstrap_servers=nodes.bootstrap, acks="all")
        producer.send("t", b"before").get(60)
        asyncio.run(throw_all(nodes.ports[1], connections // 10, rng))
        warm = nodes.resident_bytes(1)
        asyncio.run(throw_all(nodes.ports[1], connections - connections // 10, rng))
        grown = nodes.resident_bytes(1) - warm
        assert grown < 4 << 20, f"{grown} bytes more, seed {SEED}"
        producer.send("t", b"after").get(60)
        producer.close()
        consumer = KafkaConsumer(
            bootstrap_servers=nodes.bootstrap,
            auto_offset_reset="earliest",
            consumer_timeout_ms=60_000,
        )
        consumer.assign([TopicPartition("t", 0)])
        assert [next(consumer).value, next(consumer).value] == [b"before", b"after"]
        consumer.close()
        lines = nodes.log(1).read_text().splitlines()
        assert len(lines) < connections + 200, "more than a line a connection"
        assert not [line for line in lines if "Traceback" in line or "failed" in line]
        assert nodes.stop(1) == 0
