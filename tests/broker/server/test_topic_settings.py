"""Settings of topics: read once, followed, forgotten with the topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from tests.broker.api.asking import context
from tests.broker.server.raw import run
from urteil.broker.api.control_plane import update_metadata
from urteil.broker.server.metadata_cache import LEADER_DURING_DELETE, MetadataCache
from urteil.broker.server.topic_settings import TopicSettings
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import UpdateMetadataRequest


class Configs:
    """What stands in ZooKeeper; `tell` is its notice of a change."""

    def __init__(self) -> None:
        self.standing: dict[str, dict[str, str]] = {}
        self.tell: Callable[[str, dict[str, str]], None] = lambda topic, overrides: None

    def on_change(self, callback: Callable[[str, dict[str, str]], None]) -> None:
        self.tell = callback

    async def overrides_of(self, topics: list[str]) -> dict[str, dict[str, str]]:
        return {topic: self.standing.get(topic, {}) for topic in topics}


def settings() -> tuple[TopicSettings, Any, list[tuple[str, Mapping[str, str]]]]:
    configs: Any = Configs()
    told: list[tuple[str, Mapping[str, str]]] = []
    return TopicSettings(configs, lambda *change: told.append(change)), configs, told


def test_changes_of_known_topics_are_taken() -> None:
    async def scenario() -> None:
        known, configs, told = settings()
        await known.know(["t"])
        configs.tell("t", {"a": "1"})
        assert known.overrides("t") == {"a": "1"}
        assert told == [("t", {"a": "1"})]

    run(scenario())


def test_a_late_notice_of_a_deleted_topic_does_not_stand_for_its_successor() -> None:
    async def scenario() -> None:
        known, configs, _ = settings()
        configs.tell("t", {})
        configs.standing["t"] = {"min.insync.replicas": "2"}
        await known.know(["t"])
        assert known.overrides("t") == {"min.insync.replicas": "2"}

    run(scenario())


def test_a_change_while_others_are_read_is_not_lost() -> None:
    """One topic was read, another not yet (the connection to ZooKeeper is made anew)."""

    async def scenario() -> None:
        known, configs, _ = settings()
        configs.standing["t"] = {"retention.ms": "1000"}
        read = configs.overrides_of

        async def slowly(topics: list[str]) -> dict[str, dict[str, str]]:
            configs.overrides_of = read
            found: dict[str, dict[str, str]] = await read(topics)
            configs.standing["t"] = {"retention.ms": "-1"}
            configs.tell("t", configs.standing["t"])
            return found

        configs.overrides_of = slowly
        await known.know(["t", "u"])
        assert known.overrides("t") == {"retention.ms": "-1"}

    run(scenario())


def deletion() -> UpdateMetadataRequest:
    state = UpdateMetadataRequest.UpdateMetadataPartitionState(
        partition_index=0, leader=LEADER_DURING_DELETE
    )
    topic = UpdateMetadataRequest.UpdateMetadataTopicState(
        topic_name="t", topic_id=UUID(int=5), partition_states=[state]
    )
    return UpdateMetadataRequest(controller_id=1, topic_states=[topic])


def test_a_broker_without_a_replica_forgets_a_deleted_topic_as_well() -> None:
    """It read all topics at its start; the next one of that name may be placed here."""

    async def scenario() -> None:
        known, configs, _ = settings()
        configs.standing["t"] = {"min.insync.replicas": "2"}
        await known.know(["t"])

        async def registered() -> None:
            return None

        async def topics_deleted(_partitions: object) -> None:
            return None

        broker: Any = SimpleNamespace(
            authorizer=None,
            groups=SimpleNamespace(
                tasks=SimpleNamespace(spawn=lambda coroutine: coroutine.close())
            ),
            group_administration=SimpleNamespace(topics_deleted=topics_deleted),
            registration=SimpleNamespace(registered=registered),
            control=SimpleNamespace(fence=lambda *_: ErrorCode.NONE),
            metadata=MetadataCache(),
            topic_settings=known,
        )
        await update_metadata(broker, context(ApiKey.UPDATE_METADATA, 8), deletion())
        configs.standing["t"] = {}
        await known.know(["t"])
        assert known.overrides("t") == {}

    run(scenario())


def test_values_that_may_not_be_are_passed_over() -> None:
    """Whoever wrote them: the others stand, and logs can be made."""

    async def scenario() -> None:
        known, configs, told = settings()
        sound = {"min.insync.replicas": "2", "of.a.plugin": "x"}
        bad = {"retention.ms": "a week", "segment.bytes": "1", "compression.type": "zip"}
        configs.standing["t"] = {**sound, **bad}
        await known.know(["t"])
        assert known.overrides("t") == sound
        configs.tell("t", {**bad, "flush.ms": "5"})
        assert known.overrides("t") == {"flush.ms": "5"}
        assert told == [("t", {"flush.ms": "5"})]

    run(scenario())
