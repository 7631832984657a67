"""Host names, delayed operations and the metadata cache."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from tests.broker.net.raw import run
from urteil.broker.base.purgatory import DelayedOperation, Watchers
from urteil.broker.net.host_names import Resolver
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.wire.messages import UpdateMetadataRequest


def test_hosts_file_replaces_the_resolver_of_the_system(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.9 b1 B2 # two names\n\n127.0.0.8 b1\n")
    resolver = Resolver(str(hosts))
    assert resolver.resolve("b1") == resolver.resolve("b2") == "127.0.0.9"
    assert resolver.resolve("10.0.0.1") == "10.0.0.1"
    with pytest.raises(OSError, match="b3"):
        resolver.resolve("b3")
    assert Resolver().resolve("b3") == "b3"


def test_delayed_operation_ends_by_event_or_timeout() -> None:
    async def scenario() -> None:
        watchers, state = Watchers(), {"done": False}

        def delayed() -> DelayedOperation[str]:
            return DelayedOperation(lambda: "event" if state["done"] else None, lambda: "time")

        assert await delayed().wait([watchers], 10) == "time"
        assert len(watchers) == 0
        task = asyncio.ensure_future(delayed().wait([watchers, watchers], 10_000))
        await asyncio.sleep(0)
        watchers.notify()
        assert not task.done()
        state["done"] = True
        watchers.notify()
        assert await task == "event"
        assert len(watchers) == 0
        assert await delayed().wait([watchers], 0) == "event"

    run(scenario())


def update(leader: int, *, topic_id: int = 5, partition: int = 0) -> UpdateMetadataRequest:
    request = UpdateMetadataRequest
    return request(
        controller_id=1,
        topic_states=[
            request.UpdateMetadataTopicState(
                topic_name="t",
                topic_id=UUID(int=topic_id),
                partition_states=[
                    request.UpdateMetadataPartitionState(
                        partition_index=partition, leader=leader, isr=[1], replicas=[1]
                    )
                ],
            )
        ],
        live_brokers=[
            request.UpdateMetadataBroker(
                id=1,
                endpoints=[
                    request.UpdateMetadataEndpoint(port=9, host="h", listener="CLIENT"),
                ],
                rack="r",
            )
        ],
    )


def test_metadata_cache_holds_the_last_update() -> None:
    cache = MetadataCache()
    cache.update(update(1))
    assert cache.controller_id == 1
    state = cache.partition("t", 0)
    assert state is not None
    assert state.leader == 1
    assert cache.topic_names == {UUID(int=5): "t"}
    endpoint = cache.endpoint(1, "CLIENT")
    assert endpoint is not None
    assert (endpoint.host, endpoint.port) == ("h", 9)
    assert cache.endpoint(1, "OTHER") is None
    cache.update(update(1, topic_id=6))
    assert cache.topic_names == {UUID(int=6): "t"}
    assert cache.update(update(-2, topic_id=6)) == [("t", 0)]
    assert (cache.topics, cache.topic_ids, cache.topic_names) == ({}, {}, {})


def test_recreated_topic_has_no_old_partitions() -> None:
    cache = MetadataCache()
    cache.update(update(1, partition=4))
    cache.update(update(1, topic_id=6, partition=0))
    cache.update(update(1, topic_id=6, partition=1))
    assert list(cache.topics["t"]) == [0, 1]
