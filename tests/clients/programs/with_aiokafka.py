"""Produce, consume, group, transaction and administration with aiokafka."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import TopicAlreadyExistsError

BOOTSTRAP, PREFIX = sys.argv[1:]
TOPIC, GROUP, TXN = f"{PREFIX}-data", f"{PREFIX}-group", f"{PREFIX}-txn"
COMMON: dict[str, Any] = {"bootstrap_servers": BOOTSTRAP}
PLACES = [TopicPartition(TOPIC, partition) for partition in range(3)]
WAIT_S = 30.0
EXISTS = TopicAlreadyExistsError.errno


async def administration() -> dict[str, Any]:
    admin = AIOKafkaAdminClient(**COMMON)
    await admin.start()
    new = NewTopic(TOPIC, 3, 3, topic_configs={"retention.ms": "3600000"})
    await admin.create_topics([new], timeout_ms=30_000)
    answer = await admin.create_topics([new])
    again = "exists" if answer.topic_errors[0][1] == EXISTS else str(answer)
    entries: list[Any] = []
    async with asyncio.timeout(WAIT_S):  # a broker may hear of a topic later than its maker
        while not entries:
            resource = ConfigResource(ConfigResourceType.TOPIC, TOPIC)
            described = await admin.describe_configs([resource])
            entries = [entry for response in described for entry in response.resources[0][4]]
    retention = next(entry[1] for entry in entries if entry[0] == "retention.ms")
    gone = f"{PREFIX}-gone"
    await admin.create_topics([NewTopic(gone, 1, 1)], timeout_ms=30_000)
    await admin.create_partitions({gone: NewPartitions(2)}, timeout_ms=30_000)
    await admin.delete_topics([gone], timeout_ms=30_000)
    cluster = await admin.describe_cluster()
    await admin.close()
    brokers = sorted(broker["node_id"] for broker in cluster["brokers"])
    return {"retention": retention, "again": again, "brokers": brokers}


async def produce() -> dict[str, Any]:
    async with AIOKafkaProducer(**COMMON, enable_idempotence=True) as producer:
        sent = [
            await producer.send(
                TOPIC,
                f"value {n}".encode(),
                f"key {n}".encode(),
                partition=n % 3,
                headers=[("n", str(n).encode())],
            )
            for n in range(90)
        ]
        metadata = [await future for future in sent]
    return {"last": [max(t.offset for t in metadata if t.partition == p) for p in range(3)]}


async def everything(isolation: str) -> list[Any]:
    consumer = AIOKafkaConsumer(**COMMON, isolation_level=isolation)
    await consumer.start()
    consumer.assign(PLACES)
    await consumer.seek_to_beginning(*PLACES)
    ends = await consumer.end_offsets(PLACES)
    messages: list[list[Any]] = [[], [], []]
    async with asyncio.timeout(WAIT_S):
        while [place for place in PLACES if await consumer.position(place) < ends[place]]:
            for place, records in (await consumer.getmany(timeout_ms=200)).items():
                messages[place.partition] += records
    await consumer.stop()
    return [record for part in messages for record in part]


async def consume() -> dict[str, Any]:
    messages = await everything("read_uncommitted")
    return {
        "records": [[r.value.decode(), r.key.decode(), r.headers[0][1].decode()] for r in messages]
    }


async def _member() -> AIOKafkaConsumer:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = AIOKafkaConsumer(TOPIC, **COMMON, group_id=GROUP, **settings)
    await consumer.start()
    return consumer


async def group() -> dict[str, Any]:
    consumer = await _member()
    read = 0
    async with asyncio.timeout(WAIT_S):
        while read < 90:
            read += sum(map(len, (await consumer.getmany(timeout_ms=500)).values()))
    await consumer.commit()
    committed = [await consumer.committed(place) for place in PLACES]
    await consumer.stop()
    admin = AIOKafkaAdminClient(**COMMON)
    await admin.start()
    described = (await admin.describe_consumer_groups([GROUP]))[0].groups[0]
    await admin.close()
    return {"read": read, "committed": committed, "state": described[2].upper()}


async def settle() -> None:
    """A transaction's end is answered before its markers are written; a next producer of the same
    id waits for them. (This client does not ask for stable offsets.)"""
    async with AIOKafkaProducer(**COMMON, transactional_id=TXN):
        pass


async def transaction() -> dict[str, Any]:
    producer = AIOKafkaProducer(**COMMON, transactional_id=TXN)
    await producer.start()
    for fate in ("aborted", "committed"):
        await producer.begin_transaction()
        for n in range(10):
            await producer.send(TOPIC, f"{fate} {n}".encode(), partition=0)
        if fate == "aborted":
            await producer.abort_transaction()
        else:
            await producer.send_offsets_to_transaction({PLACES[0]: 7}, GROUP)
            await producer.commit_transaction()
    await producer.stop()
    await settle()
    consumer = await _member()
    offset = await consumer.committed(PLACES[0])
    await consumer.stop()
    return {
        "read_committed": len(await everything("read_committed")),
        "read_uncommitted": len(await everything("read_uncommitted")),
        "offset": offset,
    }


async def main() -> None:
    steps = (administration, produce, consume, group, transaction)
    print(json.dumps({part.__name__: await part() for part in steps}))


if __name__ == "__main__":
    asyncio.run(main())
