"""Settings of topics: loaded once, followed, dropped with the topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tests.broker.api.request_contexts import context
from tests.broker.net.raw import run
from tests.waiting import wait_until
from urteil.broker.api.control_plane import stop_replica, update_metadata
from urteil.broker.base.offload import STEP, Steps
from urteil.broker.config import topic_settings
from urteil.broker.config.topic_settings import TopicSettings
from urteil.broker.log.log_config import LogConfig
from urteil.broker.replication.metadata_cache import LEADER_DURING_DELETE, MetadataCache
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
)


class Configs:
    """Settings in ZooKeeper; `notify` sends a notification."""

    def __init__(self) -> None:
        self.standing: dict[str, dict[str, str]] = {}
        self.notify: Callable[[str, dict[str, str]], None] = lambda topic, overrides: None

    def on_change(self, callback: Callable[[str, dict[str, str]], None]) -> None:
        self.notify = callback

    async def overrides_of(self, topics: list[str]) -> dict[str, dict[str, str]]:
        return {topic: self.standing.get(topic, {}) for topic in topics}


def settings() -> tuple[TopicSettings, Any, list[tuple[str, Mapping[str, str]]]]:
    configs: Any = Configs()
    changes: list[tuple[str, Mapping[str, str]]] = []
    return TopicSettings(configs, lambda *change: changes.append(change)), configs, changes


def test_changes_of_loaded_topics_are_applied() -> None:
    async def scenario() -> None:
        known, configs, changes = settings()
        await known.load(["t"])
        configs.notify("t", {"a": "1"})
        assert known.overrides("t") == {"a": "1"}
        assert changes == [("t", {"a": "1"})]

    run(scenario())


def test_late_notification_of_a_deleted_topic_is_ignored() -> None:
    async def scenario() -> None:
        known, configs, _ = settings()
        configs.notify("t", {})
        configs.standing["t"] = {"min.insync.replicas": "2"}
        await known.load(["t"])
        assert known.overrides("t") == {"min.insync.replicas": "2"}

    run(scenario())


def test_change_during_loading_is_not_lost() -> None:
    """One topic was read, another not yet (the ZooKeeper session reconnects)."""

    async def scenario() -> None:
        known, configs, _ = settings()
        configs.standing["t"] = {"retention.ms": "1000"}
        read = configs.overrides_of

        async def slowly(topics: list[str]) -> dict[str, dict[str, str]]:
            configs.overrides_of = read
            settings: dict[str, dict[str, str]] = await read(topics)
            configs.standing["t"] = {"retention.ms": "-1"}
            configs.notify("t", configs.standing["t"])
            return settings

        configs.overrides_of = slowly
        await known.load(["t", "u"])
        assert known.overrides("t") == {"retention.ms": "-1"}

    run(scenario())


def test_unread_settings_delete_nothing_and_require_all_replicas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A replica arrives while ZooKeeper is unreachable. The defaults would delete old records and
    acknowledge acks=all with one replica."""
    monkeypatch.setattr(topic_settings, "READ_TIMEOUT_S", 0.01)

    async def scenario() -> None:
        known, configs, changes = settings()
        configs.standing["t"] = {"retention.ms": "1000"}
        read, answers = configs.overrides_of, asyncio.Event()

        async def late(topics: list[str]) -> dict[str, dict[str, str]]:
            await answers.wait()
            settings: dict[str, dict[str, str]] = await read(topics)
            return settings

        configs.overrides_of = late
        await known.load(["t", "gone"])
        meanwhile = LogConfig.from_properties({}, known.overrides("t"))
        assert meanwhile.retention_ms == meanwhile.retention_bytes == -1
        assert not meanwhile.compacts
        assert meanwhile.min_insync_replicas > 1000
        known.forget("gone")
        answers.set()
        await wait_until(lambda: changes, "what was read late")
        assert known.overrides("t") == {"retention.ms": "1000"}
        assert known.overrides("gone") == {}
        assert changes == [("t", {"retention.ms": "1000"})]

    run(scenario())


def test_log_without_a_role_follows_its_topics_settings() -> None:
    async def scenario() -> None:
        known, configs, changes = settings()
        configs.standing["t"] = {"retention.ms": "-1"}
        await known.load(["t"])

        async def await_registration() -> None:
            return None

        stopped = StopReplicaResponse.StopReplicaPartitionError(topic_name="t", partition_index=0)
        here = [SimpleNamespace(topic="t")]

        def stop(_request: StopReplicaRequest) -> Steps[StopReplicaResponse]:
            yield STEP
            return StopReplicaResponse(partition_errors=[stopped])

        broker: Any = SimpleNamespace(
            authorizer=None,
            registration=SimpleNamespace(await_registration=await_registration),
            control=SimpleNamespace(
                turn=asyncio.Lock(),
                stop_replica=stop,
            ),
            logs=SimpleNamespace(logs=lambda: here),
            replicas=SimpleNamespace(partitions={}),
            topic_settings=known,
        )
        request = StopReplicaRequest(controller_id=1)
        await stop_replica(broker, context(ApiKey.STOP_REPLICA, 4), request)
        assert known.overrides("t") == {"retention.ms": "-1"}
        configs.notify("t", {"retention.ms": "5"})
        assert changes == [("t", {"retention.ms": "5"})]
        here.clear()
        await stop_replica(broker, context(ApiKey.STOP_REPLICA, 4), request)
        assert known.overrides("t") == {}

    run(scenario())


def deletion() -> UpdateMetadataRequest:
    state = UpdateMetadataRequest.UpdateMetadataPartitionState(
        partition_index=0, leader=LEADER_DURING_DELETE
    )
    topic = UpdateMetadataRequest.UpdateMetadataTopicState(
        topic_name="t", topic_id=UUID(int=5), partition_states=[state]
    )
    return UpdateMetadataRequest(controller_id=1, topic_states=[topic])


def test_broker_without_a_replica_drops_a_deleted_topic() -> None:
    """The broker loaded all topics at its start, and a successor may be placed on it."""

    async def scenario() -> None:
        known, configs, _ = settings()
        configs.standing["t"] = {"min.insync.replicas": "2"}
        await known.load(["t"])

        async def await_registration() -> None:
            return None

        async def topics_deleted(_partitions: object) -> None:
            return None

        broker: Any = SimpleNamespace(
            authorizer=None,
            groups=SimpleNamespace(
                tasks=SimpleNamespace(spawn=lambda coroutine: coroutine.close())
            ),
            group_maintenance=SimpleNamespace(topics_deleted=topics_deleted),
            registration=SimpleNamespace(await_registration=await_registration),
            control=SimpleNamespace(
                turn=asyncio.Lock(), fence=lambda *_: ErrorCode.NONE, apply_metadata=lambda _: None
            ),
            metadata=MetadataCache(),
            topic_settings=known,
        )
        await update_metadata(broker, context(ApiKey.UPDATE_METADATA, 8), deletion())
        configs.standing["t"] = {}
        await known.load(["t"])
        assert known.overrides("t") == {}

    run(scenario())


def test_invalid_values_are_ignored() -> None:
    """Other settings apply, and logs can be created."""

    async def scenario() -> None:
        known, configs, changes = settings()
        sound = {"min.insync.replicas": "2", "of.a.plugin": "x"}
        bad = {"retention.ms": "a week", "segment.bytes": "1", "compression.type": "zip"}
        configs.standing["t"] = {**sound, **bad}
        await known.load(["t"])
        assert known.overrides("t") == sound
        configs.notify("t", {**bad, "flush.ms": "5"})
        assert known.overrides("t") == {"flush.ms": "5"}
        assert changes == [("t", {"flush.ms": "5"})]

    run(scenario())
