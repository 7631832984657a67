from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from tests.broker.zookeeper.server import ZooKeeperServer, expire
from tests.broker.zookeeper.test_session import run, session
from tests.waiting import wait_until
from urteil.broker.base.clock import Clock
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.entity_configs import EntityConfigs
from urteil.broker.zookeeper.producer_ids import take_block
from urteil.broker.zookeeper.registration import (
    AlreadyRegistered,
    Registration,
    check_addresses,
    cluster_id,
    create_persistent_paths,
    read_brokers,
)
from urteil.broker.zookeeper.session import Session, State
from urteil.broker.zookeeper.znodes import BrokerEndpoint, BrokerInfo


def registration(
    zk: Session, broker: int = 1, host: str = "b1", patience_s: float = 30.0
) -> Registration:
    endpoint = BrokerEndpoint(listener="PLAINTEXT", host=host, port=9092)
    info = BrokerInfo(id=broker, endpoints=(endpoint,))
    return Registration(zk, info, lambda: 12, patience_s)


def test_paths_and_cluster_id_are_created_once(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as first, session(zookeeper, chroot) as two:
            await asyncio.gather(create_persistent_paths(first), create_persistent_paths(two))
            ids = await asyncio.gather(cluster_id(first, uuid4), cluster_id(two, uuid4))
            assert len(set(ids)) == 1
            assert len(ids[0]) == 22
            for path in znodes.PERSISTENT:
                assert await first.exists(path), path

    run(scenario)


def test_node_of_an_earlier_session_is_replaced(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as old, session(zookeeper, chroot) as new:
            await create_persistent_paths(old)
            first = await registration(old).register()
            again = registration(new)
            second = await again.register()
            assert second > first
            assert again.epoch == second
            (info,) = await read_brokers(new)
            assert info.epoch == second
            stat = await new.exists(znodes.broker_path(1))
            assert stat is not None
            assert stat.ephemeral_owner == new.session_id
            assert await again.register() == second

    run(scenario)


def test_id_of_another_live_broker_is_rejected(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as old, session(zookeeper, chroot) as new:
            await create_persistent_paths(old)
            first = await registration(old).register()
            with pytest.raises(AlreadyRegistered) as refused:
                await registration(new, host="b2", patience_s=0.1).register()
            assert str(refused.value) == (
                "broker.id 1 is already registered by another broker, at b1:9092: the one at "
                "b2:9092 needs an id of its own"
            )
            (info,) = await read_brokers(new)
            assert info.epoch == first

    run(scenario)


def test_id_is_registered_after_the_other_session_ends(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as old, session(zookeeper, chroot) as new:
            await create_persistent_paths(old)
            first = await registration(old).register()
            waiting = asyncio.create_task(registration(new, host="b2").register())
            expire(zookeeper.connect, old)
            assert await waiting > first
            (info,) = await read_brokers(new)
            assert info.endpoints[0].host == "b2"

    run(scenario)


def test_address_of_another_broker_is_rejected(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            await create_persistent_paths(zk)
            await registration(zk).register()
            await check_addresses(zk, 1, ["b1:9092"])
            await check_addresses(zk, 2, ["b1:9093", "b2:9092"])
            with pytest.raises(
                AlreadyRegistered, match=r"end points b1:9092 .* by broker 1: .* for broker 2;"
            ):
                await check_addresses(zk, 2, ["b2:9092", "b1:9092"])

    run(scenario)


def test_broker_registers_again_after_expiry(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            await create_persistent_paths(zk)
            mine = registration(zk)
            first = await mine.register()
            states: list[State] = []
            zk.on_state(states.append)
            expire(zookeeper.connect, zk)
            await wait_until(lambda: State.EXPIRED in states, "expiry")
            assert await mine.register() > first

    run(scenario)


def test_producer_id_blocks_are_unique(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as first, session(zookeeper, chroot) as two:
            await create_persistent_paths(first)
            racing = [
                take_block(zk, broker) for _ in range(2) for broker, zk in ((1, first), (2, two))
            ]
            blocks = await asyncio.gather(*racing)
            assert sorted(blocks) == [(n, n + 999) for n in range(0, 4000, 1000)]
            data, _ = await first.get(znodes.PRODUCER_ID_BLOCK)
            assert znodes.decode_producer_id_block(data) == (3000, 3999)

    run(scenario)


def test_change_before_the_start_is_reported(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """Settings are read before the logs are opened, and followed afterwards."""

    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            await create_persistent_paths(zk)
            configs = EntityConfigs(zk, Clock().now_ms)
            notices: list[tuple[str, dict[str, str]]] = []
            configs.on_change(lambda topic, overrides: notices.append((topic, overrides)))
            assert await configs.topic_overrides("t") == {}
            await zk.create(znodes.topic_config_path("t"), znodes.encode_config({"a": "1"}))
            changes = f"{znodes.CONFIG_CHANGES}/config_change_"
            await zk.create(changes, znodes.encode_config_change("topics/t"), sequence=True)
            await configs.start()
            await wait_until(lambda: notices, "the change")
            assert notices == [("t", {"a": "1"})]
            await configs.stop()

    run(scenario)


def test_topic_settings_are_read_and_followed(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            await create_persistent_paths(zk)
            configs = EntityConfigs(zk, Clock().now_ms)
            notices: list[tuple[str, dict[str, str]]] = []
            configs.on_change(lambda topic, overrides: notices.append((topic, overrides)))
            await configs.start()
            assert await configs.topic_overrides("t") == {}
            await zk.create(znodes.topic_config_path("t"), znodes.encode_config({"a": "1"}))
            changes = f"{znodes.CONFIG_CHANGES}/config_change_"
            for nonsense in (b"not json", b"[]", b'{"version":2,"entity_path":7}'):
                await zk.create(changes, nonsense, sequence=True)
            await zk.create(changes, znodes.encode_config_change("topics/t"), sequence=True)
            await wait_until(lambda: notices, "the change")
            assert notices == [("t", {"a": "1"})]
            assert await configs.overrides_of(["t", "u"]) == {"t": {"a": "1"}, "u": {}}
            await configs.stop()

    run(scenario)


def test_written_settings_are_announced_and_old_notifications_removed(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """Changes of clients, users and addresses, and a failing callback, do no harm."""

    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            await create_persistent_paths(zk)
            late = [0]
            configs = EntityConfigs(zk, lambda: Clock().now_ms() + late[0])
            changes: list[tuple[str, dict[str, str]]] = []

            def fails(entity: str, settings: dict[str, str]) -> None:
                raise ValueError(entity)

            for kind in ("topics", "brokers"):
                configs.on_change(fails, kind)
                configs.on_change(lambda entity, settings: changes.append((entity, settings)), kind)
            await configs.start()
            for kind, entity in (
                ("clients", "c"), ("users", "u/clients/c"), ("ips", "1.2.3.4"), ("brokers", "1"),
                ("brokers", "<default>"), ("topics", "t"), ("topics", "t"),
            ):  # fmt: skip
                await configs.write(kind, entity, {"a": entity})
            await wait_until(lambda: len(changes) == 4, "four notices")
            assert {entity for entity, _ in changes} == {"1", "<default>", "t"}
            assert all(settings == {"a": entity} for entity, settings in changes)
            data, _ = await zk.get("/config/brokers/<default>")
            assert data == b'{"version":1,"config":{"a":"<default>"}}'
            names = await zk.children(znodes.CONFIG_CHANGES)
            data, _ = await zk.get(f"{znodes.CONFIG_CHANGES}/{names[0]}")
            assert data == b'{"version":2,"entity_path":"clients/c"}'
            assert len(names) == 7
            late[0] = 15 * 60 * 1000 + 60_000
            await configs.write("topics", "t", {})
            await wait_until(lambda: changes[-1] == ("t", {}), "the last notice")

            async def are_removed() -> bool:
                return not await zk.children(znodes.CONFIG_CHANGES)

            await wait_until(are_removed)
            await configs.stop()

    run(scenario)


class SlowSession:
    """A ZooKeeper session whose responses may be delayed."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.written: dict[str, bytes] = {}

    async def set(self, path: str, data: bytes) -> None:
        self.written[path] = data
        await self.answers.wait()

    async def create(self, path: str, data: bytes, *, sequence: bool) -> None:
        await self.answers.wait()
        self.written[path] = data


@pytest.mark.parametrize("slow", ["the write", "the notice"])
def test_cancelled_write_is_announced(slow: str) -> None:
    async def scenario() -> None:
        zk: Any = SlowSession()
        configs = EntityConfigs(zk, Clock().now_ms)
        if slow == "the notice":
            zk.answers.set()
            put = zk.set

            async def then_slow(path: str, data: bytes) -> None:
                await put(path, data)
                zk.answers.clear()

            zk.set = then_slow
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await configs.write("topics", "t", {"min.insync.replicas": "2"})
        zk.answers.set()
        notification = f"{znodes.CONFIG_CHANGES}/config_change_"
        await wait_until(lambda: notification in zk.written, "the notice")
        assert zk.written[notification] == znodes.encode_config_change("topics/t")

    run(scenario)
