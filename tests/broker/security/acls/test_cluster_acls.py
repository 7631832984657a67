"""ACLs in a real ZooKeeper, changed and followed by two brokers."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.broker.zookeeper.server import ZooKeeperServer
from tests.broker.zookeeper.test_session import run, session
from tests.waiting import wait_until
from urteil.broker.acl_session import AclSession
from urteil.broker.config.broker_config import load_config
from urteil.broker.config.values import ConfigError
from urteil.broker.environment import Environment
from urteil.broker.security.acls.acl_model import (
    AclFilter,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
)
from urteil.broker.security.acls.acl_znodes import (
    CHANGE_PREFIX,
    acl_path,
    decode_change,
    encode_change,
    place_of,
)
from urteil.broker.security.acls.cluster_acls import ClusterAcls
from urteil.broker.zookeeper.change_notifications import ChangeNotifications
from urteil.broker.zookeeper.session import ConnectionLoss, Session

ORDERS = Pattern(ResourceType.TOPIC, "orders")
PREFIX = Pattern(ResourceType.TRANSACTIONAL_ID, "app-", PatternType.PREFIXED)


def entry(principal: str, operation: Operation = Operation.READ) -> Entry:
    return Entry(principal, "*", operation, Permission.ALLOW)


def standing(keeper: ClusterAcls, pattern: Pattern) -> set[Entry]:
    acls = keeper.table.get(pattern)
    return set(acls.entries) if acls else set()


def test_acls_in_a_separate_zookeeper(zookeeper: ZooKeeperServer, chroot: str) -> None:
    properties = {"broker.id": "1", "zookeeper.connect": zookeeper.connect + chroot}
    url = {"authorizer.zookeeper.url": f"{zookeeper.connect}{chroot}/apart"}
    timeout = {"authorizer.zookeeper.session.timeout.ms": "5000"}

    async def scenario() -> None:
        async with session(zookeeper, chroot) as own:
            shared = AclSession(load_config(properties), own, Environment(), str)
            assert shared.zk is own
            apart = AclSession(
                load_config({**properties, **url, **timeout}), own, Environment(), str
            )
            await apart.connect()
            keeper = ClusterAcls(apart.zk, lambda: 0)
            await keeper.start()
            await keeper.add(ORDERS, [entry("User:ann")])
            assert await own.children("/apart/kafka-acl/Topic") == ["orders"]
            assert "kafka-acl" not in await own.children("/")
            await keeper.stop()
            await apart.close()

    run(scenario)


def test_invalid_timeout_is_reported(zookeeper: ZooKeeperServer, chroot: str) -> None:
    time = {"authorizer.zookeeper.session.timeout.ms": "soon"}

    async def scenario() -> None:
        config = load_config({"broker.id": "1", "zookeeper.connect": zookeeper.connect, **time})
        async with session(zookeeper, chroot) as own:
            with pytest.raises(ConfigError, match=r"soon for configuration authorizer\.zookeeper"):
                AclSession(config, own, Environment(), str)

    run(scenario)


def test_changes_reach_every_broker(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk, session(zookeeper, chroot) as other:
            first, second = ClusterAcls(zk, lambda: 0), ClusterAcls(other, lambda: 0)
            await first.start()
            await first.add(ORDERS, [entry("User:ann")])
            await second.start()
            assert standing(second, ORDERS) == {entry("User:ann")}
            await first.add(PREFIX, [entry("User:bob")])
            await wait_until(lambda: standing(second, PREFIX) == {entry("User:bob")}, "the prefix")
            removed = await second.remove([AclFilter(principal="User:bob"), AclFilter()])
            assert [[removal.entry.principal for removal in ones] for ones in removed] == [
                ["User:bob"],
                ["User:ann"],
            ]
            for never in ("..", "\0"):  # no node can have these names
                nobodys = Pattern(ResourceType.TOPIC, never)
                with pytest.raises(ValueError, match="no node"):
                    await second.add(nobodys, [entry("User:ann")])
                picks = AclFilter(type=nobodys.type, name=never, kind=nobodys.kind)
                assert await second.remove([picks]) == [[]]
            await wait_until(lambda: not standing(first, PREFIX), "the removal")
            assert await zk.exists(acl_path(PREFIX)) is None
            await first.stop()
            await second.stop()

    run(scenario)


def test_concurrent_changes_of_brokers_are_kept(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """Each broker writes against its known version, and reads again if that is old."""

    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk, session(zookeeper, chroot) as other:
            keepers = ClusterAcls(zk, lambda: 0), ClusterAcls(other, lambda: 0)
            for keeper in keepers:
                await keeper.start()
            await asyncio.gather(
                *(
                    keeper.add(ORDERS, [entry(f"User:{number}-{n}")])
                    for number, keeper in enumerate(keepers)
                    for n in range(4)
                )
            )
            entries = {entry(f"User:{number}-{n}") for number in range(2) for n in range(4)}
            for keeper in keepers:
                await wait_until(partial(stands, keeper, entries), "all")
                await keeper.stop()

    run(scenario)


def test_change_with_a_lost_response_is_announced(
    zookeeper: ZooKeeperServer, chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeated read shows the change as if it had always been there."""

    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk, session(zookeeper, chroot) as other:
            first, second = ClusterAcls(zk, lambda: 0), ClusterAcls(other, lambda: 0)
            for keeper in (first, second):
                await keeper.start()
            for principals in ({"User:ann"}, {"User:ann", "User:bob"}):
                lose_the_next_answer(zk, monkeypatch)
                await first.add(ORDERS, [entry(who) for who in sorted(principals)])
                await wait_until(
                    partial(stands, second, {entry(who) for who in principals}), "the change"
                )
            lose_the_next_answer(zk, monkeypatch)
            await first.remove([AclFilter()])
            await wait_until(lambda: not standing(second, ORDERS), "the removal")
            await first.stop()
            await second.stop()

    run(scenario)


def stands(keeper: ClusterAcls, entries: set[Entry]) -> bool:
    return standing(keeper, ORDERS) == entries


def lose_the_next_answer(zk: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose the response to the next write."""
    monkeypatch.undo()
    for name in ("create", "set", "delete"):
        write = getattr(zk, name)

        async def lost(*given: Any, write: Any = write, **named: Any) -> None:
            monkeypatch.undo()
            await write(*given, **named)
            raise ConnectionLoss

        monkeypatch.setattr(zk, name, lost)


def test_cancelled_change_is_announced_when_repeated(
    zookeeper: ZooKeeperServer, chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request timed out between the ACL and its notification."""

    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk, session(zookeeper, chroot) as other:
            first, second = ClusterAcls(zk, lambda: 0), ClusterAcls(other, lambda: 0)
            for keeper in (first, second):
                await keeper.start()
            reached = asyncio.Event()

            async def stuck(self: ChangeNotifications, data: bytes) -> None:
                reached.set()
                await asyncio.Event().wait()

            with monkeypatch.context() as patch:
                patch.setattr(ChangeNotifications, "notify", stuck)
                adding = asyncio.ensure_future(first.add(ORDERS, [entry("User:ann")]))
                await reached.wait()
                adding.cancel()
                await asyncio.gather(adding, return_exceptions=True)
            await first.add(ORDERS, [entry("User:ann")])
            await wait_until(lambda: standing(second, ORDERS) == {entry("User:ann")}, "the change")
            await first.stop()
            await second.stop()

    run(scenario)


NO_NOTICES = [b'{"resourceType":2,"name":"app-","patternType":"PREFIXED"}', b"[]", b"\xff"]


def test_malformed_notification_is_skipped(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk, session(zookeeper, chroot) as other:
            first, second = ClusterAcls(zk, lambda: 0), ClusterAcls(other, lambda: 0)
            for keeper in (first, second):
                await keeper.start()
            for data in NO_NOTICES:
                path = f"{place_of(PREFIX).changes}/{CHANGE_PREFIX}"
                await zk.create(path, data, sequence=True)
            await first.add(PREFIX, [entry("User:ann")])
            await wait_until(
                lambda: standing(second, PREFIX) == {entry("User:ann")}, "the next one"
            )
            await first.stop()
            await second.stop()

    run(scenario)


def test_malformed_acl_node_prevents_the_start(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with session(zookeeper, chroot) as zk:
            await zk.create(acl_path(ORDERS), b'{"version":1,"acls":[{}]}', make_parents=True)
            with pytest.raises(ValueError, match="/kafka-acl/Topic/orders"):
                await ClusterAcls(zk, lambda: 0).start()

    run(scenario)


@pytest.mark.parametrize("pattern", [ORDERS, PREFIX, Pattern(ResourceType.GROUP, "a:b")])
def test_notifications(pattern: Pattern) -> None:
    assert decode_change(encode_change(pattern), pattern.kind) == pattern


def test_notifications_of_older_brokers() -> None:
    assert decode_change(b"Topic:orders", PatternType.LITERAL) == ORDERS
    with pytest.raises(ValueError, match="no resource"):
        decode_change(b"orders", PatternType.LITERAL)
