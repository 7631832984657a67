"""Dynamic settings: precedence, rejection and notification."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from tests.broker.net.raw import run
from urteil.broker.config.dynamic_settings import DynamicSettings
from urteil.broker.config.incremental_changes import Change, Operation, RejectedChange
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.config.log_levels import check_node
from urteil.broker.controller.config_administration import (
    BROKER,
    TOPIC,
    Alteration,
    ConfigAdministration,
    check_broker,
)
from urteil.broker.log.log_config import LogConfig
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.wire.errors import ErrorCode

SET = Operation.SET


class Configs:
    """Settings in ZooKeeper; `away` simulates a ZooKeeper that does not answer."""

    def __init__(self) -> None:
        self.standing: dict[tuple[str, str], dict[str, str]] = {}
        self.callbacks: list[Callable[[str, dict[str, str]], None]] = []
        self.away = False

    def on_change(self, callback: Callable[[str, dict[str, str]], None], kind: str) -> None:
        assert kind == "brokers"
        self.callbacks.append(callback)

    async def read(self, kind: str, entity: str) -> dict[str, str]:
        await asyncio.sleep(0)
        if self.away:
            await asyncio.Event().wait()
        return dict(self.standing.get((kind, entity), {}))

    read_or_empty = read

    async def write(self, kind: str, entity: str, settings: Mapping[str, str]) -> None:
        await asyncio.sleep(0)
        self.standing[kind, entity] = dict(settings)
        if kind == "brokers":
            for callback in self.callbacks:
                callback(entity, dict(settings))


class BrokerUnderTest:
    """Broker 1 with a topic `t`."""

    def __init__(self, timeout_ms: int = 60_000, **static: str) -> None:
        named = {name.replace("_", "."): value for name, value in static.items()}
        self.properties = LiveProperties({"broker.id": "1", **named})
        self.configs = Configs()
        configs: Any = self.configs
        self.dynamic = DynamicSettings(1, self.properties, configs)
        metadata = cast(MetadataCache, type("Metadata", (), {"topics": {"t": {}}})())
        self.admin = ConfigAdministration(
            1, self.properties, configs, self.dynamic, metadata, timeout_ms
        )

    async def set(self, kind: int, name: str, **settings: str) -> tuple[ErrorCode, str | None]:
        changes = [Change(name.replace("_", "."), SET, value) for name, value in settings.items()]
        answer = (await self.admin.alter([Alteration(kind, name, changes)], validate_only=False))[0]
        return answer.error, answer.message


def test_precedence_of_dynamic_settings() -> None:
    async def scenario() -> None:
        broker = BrokerUnderTest(log_retention_hours="1", min_insync_replicas="2")
        overrides = {"segment.ms": "7"}

        def now() -> LogConfig:
            return LogConfig.from_properties(broker.properties, overrides)

        assert (now().retention_ms, now().min_insync_replicas) == (3_600_000, 2)
        await broker.set(BROKER, "", log_retention_ms="5000", min_insync_replicas="3")
        assert (now().retention_ms, now().min_insync_replicas) == (5000, 3)
        await broker.set(BROKER, "1", log_retention_ms="6000", log_roll_ms="100")
        assert (now().retention_ms, now().min_insync_replicas) == (6000, 3)
        assert now().segment_ms == 7
        await broker.configs.write("brokers", "1", {})
        assert now().retention_ms == 5000
        await broker.configs.write("brokers", "<default>", {})
        assert (now().retention_ms, now().min_insync_replicas) == (3_600_000, 2)

    run(scenario())


def test_subscribers_receive_changed_names() -> None:
    async def scenario() -> None:
        broker = BrokerUnderTest(min_insync_replicas="2")
        changes: list[frozenset[str]] = []
        broker.properties.subscribe(changes.append)
        await broker.set(BROKER, "1", min_insync_replicas="2", log_retention_ms="9")
        await broker.set(BROKER, "1", min_insync_replicas="3")
        await broker.set(BROKER, "1", min_insync_replicas="3")
        await broker.configs.write("brokers", "2", {"min.insync.replicas": "1"})
        assert changes == [{"log.retention.ms"}, {"min.insync.replicas"}]

    run(scenario())


@pytest.mark.parametrize(
    "standing",
    [
        {"min.insync.replicas": "none"},
        {"num.partitions": "5"},
        {"ssl.keystore.location": "/x"},
        {"advertised.listeners": "PLAINTEXT://elsewhere:1"},
        {"listener.name.client.ssl.keystore.password": "unreadable"},
    ],
)
def test_invalid_stored_settings_are_ignored(standing: dict[str, str]) -> None:
    """Another tool may write anything to ZooKeeper; valid settings still apply."""

    async def scenario() -> None:
        broker = BrokerUnderTest()
        broker.configs.standing["brokers", "1"] = {**standing, "log.retention.ms": "9"}
        await broker.dynamic.load()
        assert broker.properties.own == {"log.retention.ms": "9"}

    run(scenario())


def test_contradicting_settings_change_nothing() -> None:
    async def scenario() -> None:
        broker = BrokerUnderTest()
        await broker.set(BROKER, "1", log_retention_ms="9")
        await broker.configs.write("brokers", "1", {"log.retention.ms": "0", "log.roll.ms": "5"})
        assert broker.properties.own == {"log.retention.ms": "9"}

    run(scenario())


def test_concurrent_changes_of_a_topic_are_all_applied() -> None:
    async def scenario() -> None:
        broker = BrokerUnderTest()
        await asyncio.gather(
            broker.set(TOPIC, "t", retention_ms="1"),
            broker.set(TOPIC, "t", flush_ms="2"),
            broker.set(TOPIC, "t", segment_ms="3"),
        )
        assert len(broker.configs.standing["topics", "t"]) == 3

    run(scenario())


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "t"), (BROKER, "1"), (BROKER, "")])
def test_change_times_out_without_zookeeper(kind: int, name: str) -> None:
    async def scenario() -> None:
        broker = BrokerUnderTest(timeout_ms=50)
        broker.configs.away = True
        error, message = await broker.set(kind, name, log_retention_ms="1")
        assert error is ErrorCode.REQUEST_TIMED_OUT
        assert message
        broker.configs.away, broker.admin._timeout_s = False, 60.0
        assert (await broker.set(BROKER, "1", log_retention_ms="1"))[0] is ErrorCode.NONE

    run(scenario())


def test_encrypted_passwords_survive_a_change_of_the_secret() -> None:
    name = "listener.name.client.ssl.keystore.password"

    async def scenario() -> None:
        broker = BrokerUnderTest(
            password_encoder_secret="first", password_encoder_iterations="1024"
        )
        await broker.set(BROKER, "1", **{name: "geheim"})
        stored = broker.configs.standing["brokers", "1"][name]
        assert "geheim" not in stored
        assert broker.properties.own == {name: "geheim"}
        later = BrokerUnderTest(
            password_encoder_secret="second", password_encoder_old_secret="first"
        )
        later.configs.standing["brokers", "1"] = {name: stored}
        await later.dynamic.load()
        assert later.properties.own == {name: "geheim"}
        last = BrokerUnderTest(password_encoder_secret="second")
        last.configs.standing = later.configs.standing
        await last.dynamic.load()
        assert last.properties.own == {name: "geheim"}
        without = BrokerUnderTest()
        assert (await without.set(BROKER, "1", **{name: "x"}))[0] is ErrorCode.INVALID_CONFIG
        for_all = await broker.set(BROKER, "", **{name: "x"})
        assert for_all[0] is ErrorCode.INVALID_REQUEST

    run(scenario())


def test_new_secret_leaves_invalid_settings_unchanged() -> None:
    name, lost = (
        f"listener.name.{listener}.ssl.keystore.password" for listener in ("client", "other")
    )
    others = {"listeners": "PLAINTEXT://a:1", "log.retention.ms": "never", lost: "nonsense"}

    async def scenario() -> None:
        broker = BrokerUnderTest(
            password_encoder_secret="first", password_encoder_iterations="1024"
        )
        await broker.set(BROKER, "1", **{name: "geheim"})
        later = BrokerUnderTest(
            password_encoder_secret="second", password_encoder_old_secret="first"
        )
        stored = broker.configs.standing["brokers", "1"][name]
        later.configs.standing["brokers", "1"] = {name: stored, **others}
        await later.dynamic.load()
        assert later.properties.own == {name: "geheim"}
        after = later.configs.standing["brokers", "1"]
        assert after.pop(name) != stored
        assert after == others

    run(scenario())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("advertised.listeners", "PLAINTEXT://a:1", "restart"),
        ("max.connections.per.ip.overrides", "a:1,b", "('b' has no colon"),
        ("max.connections.per.ip.overrides", "a:2147483648", "overrides: 2147483648 of a"),
    ],
)
def test_rejections_in_our_own_words(name: str, value: str, said: str) -> None:
    async def scenario() -> None:
        error, message = await BrokerUnderTest().set(BROKER, "1", **{name: value})
        assert error is ErrorCode.INVALID_REQUEST
        assert said in (message or "")

    run(scenario())


@pytest.mark.parametrize("number", ["9" * 5000, "2147483648", "one", "-", ""])
def test_node_id_that_is_no_number_is_rejected(number: str) -> None:
    """Python parses no number of so many digits, Java none so large."""
    for check in (check_broker, check_node):
        with pytest.raises(RejectedChange, match="must be an integer"):
            check(number, 1)
        with pytest.raises(RejectedChange, match="but received"):
            check("-1", 1)
        check("+1", 1)


def test_throttles_of_the_file_are_ignored() -> None:
    name = "leader.replication.throttled.rate"
    properties = LiveProperties({name: "5"})
    assert name not in properties
    properties.replace(cluster_wide={name: "6"})
    assert properties[name] == "6"
    properties.replace(own={name: "7"})
    assert properties[name] == "7"
