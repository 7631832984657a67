"""AlterConfigs and IncrementalAlterConfigs (`ConfigAdminManager` and `ZkAdminManager`).

Any broker changes settings of topics and of all brokers; a broker's own settings only that broker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from urteil.broker.base.offload import yield_items
from urteil.broker.config.dynamic_settings import DynamicSettings
from urteil.broker.config.incremental_changes import (
    Change,
    RejectedChange,
    apply_changes,
    check_changes,
)
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.config.log_levels import alter_levels
from urteil.broker.config.values import (
    ConfigError,
    ConfigKey,
    known_keys,
    parse_int,
    topic_keys,
)
from urteil.broker.controller.topic_configs import InvalidTopicConfig, validate_topic_configs
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.zookeeper.entity_configs import BROKERS, TOPICS, EntityConfigs
from urteil.broker.zookeeper.session import NodeTooLarge

KeyOf = Callable[[str], ConfigKey | None]
Denial = Callable[[int, str], ErrorCode]
"""Returns the error for a resource, by kind and name, that the client may not change; NONE for
others."""

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS = 2, 4, 8, 16
"""`ConfigResource.Type`."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """The changes of one resource. `whole`: they replace all its settings."""

    kind: int
    name: str
    changes: Sequence[Change]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The result for one resource."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class ConfigAdministration:
    """Reads, changes, validates and writes settings, one change at a time, so that none overwrites
    another."""

    def __init__(
        self,
        broker_id: int,
        properties: LiveProperties,
        configs: EntityConfigs,
        dynamic: DynamicSettings,
        metadata: MetadataCache,
        timeout_ms: int,
    ) -> None:
        self._broker_id = broker_id
        self._properties = properties
        self._configs = configs
        self._dynamic = dynamic
        self._metadata = metadata
        self._timeout_s = timeout_ms / 1000
        self._turn = asyncio.Lock()

    async def alter(
        self,
        alterations: Sequence[Alteration],
        denial: Denial = lambda _kind, _name: ErrorCode.NONE,
        *,
        validate_only: bool,
    ) -> list[Answer]:
        """Return a result for each alteration, in order. A resource that is named twice is not
        changed; `denial` returns the error of a resource that the client may not change.

        REQUEST_TIMED_OUT if ZooKeeper is unreachable for longer than `request.timeout.ms`; the
        change may have been made. Apache Kafka waits on.
        """
        times = Counter((alteration.kind, alteration.name) for alteration in alterations)
        answers = []
        async for alteration in yield_items(alterations, 20):
            if times[alteration.kind, alteration.name] > 1:
                why = "Each resource must appear at most once."
                answers.append(Answer(ErrorCode.INVALID_REQUEST, why))
                continue
            try:
                await self._alter(alteration, denial, validate_only=validate_only)
                answers.append(Answer())
            except RejectedChange as refused:
                answers.append(Answer(refused.error, refused.message))
        return answers

    async def _alter(self, asked: Alteration, denial: Denial, *, validate_only: bool) -> None:
        check_changes(asked.changes)
        if asked.kind == BROKER and asked.name:
            check_broker(asked.name, self._broker_id)
        error = denial(asked.kind, asked.name)
        if error is not ErrorCode.NONE:
            raise RejectedChange(error, None)
        try:
            async with asyncio.timeout(self._timeout_s), self._turn:
                if asked.kind == TOPIC:
                    await self._alter_topic(asked, validate_only=validate_only)
                elif asked.kind == BROKER_LOGGER and not asked.whole:
                    changes = asked.changes
                    alter_levels(asked.name, changes, self._broker_id, validate_only=validate_only)
                elif asked.kind == BROKER:
                    await self._alter_broker(asked, validate_only=validate_only)
                else:
                    raise _unknown_kind(asked)
        except TimeoutError:
            raise RejectedChange(
                ErrorCode.REQUEST_TIMED_OUT, "ZooKeeper cannot be reached"
            ) from None
        except NodeTooLarge as wrong:
            raise RejectedChange(ErrorCode.INVALID_REQUEST, str(wrong)) from None

    async def _alter_topic(self, asked: Alteration, *, validate_only: bool) -> None:
        topic = asked.name
        if not topic:
            raise RejectedChange(
                ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."
            )
        settings = await self._changed_settings(TOPICS, topic, asked, _topic_key)
        if topic not in self._metadata.topics:
            raise RejectedChange(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist."
            )
        try:
            validate_topic_configs(settings.items(), self._properties)
        except InvalidTopicConfig as wrong:
            raise RejectedChange(ErrorCode.INVALID_CONFIG, str(wrong)) from None
        except ConfigError as wrong:
            raise _invalid("TOPIC", topic, wrong) from None
        if not validate_only:
            await self._configs.write(TOPICS, topic, settings)

    async def _changed_settings(
        self, kind: str, entity: str, asked: Alteration, key_of: KeyOf
    ) -> dict[str, str]:
        standing: Mapping[str, str] = {}
        if not asked.whole:
            standing = await self._configs.read(kind, entity)
            if kind == BROKERS:
                standing = self._dynamic.decode(standing, per_broker=asked.name != "")
        return apply_changes(standing, asked.changes, key_of)

    async def _alter_broker(self, asked: Alteration, *, validate_only: bool) -> None:
        per_broker = asked.name != ""
        for change in asked.changes:
            if change.operation not in range(4):
                raise RejectedChange(
                    ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}"
                )
        entity = self._dynamic.entity(asked.name)
        settings = await self._changed_settings(BROKERS, entity, asked, known_keys().get)
        try:
            self._dynamic.validate(settings, per_broker=per_broker)
        except ConfigError as wrong:
            raise RejectedChange(ErrorCode.INVALID_REQUEST, str(wrong)) from None
        if validate_only:
            return
        try:
            encoded = self._dynamic.encode(settings)
        except ConfigError as wrong:
            raise _invalid("BROKER", asked.name, wrong) from None
        await self._configs.write(BROKERS, entity, encoded)


def check_broker(name: str, broker_id: int) -> None:
    """Raise RejectedChange unless `name` is this broker."""
    number = parse_int(name)
    if number is None:
        raise RejectedChange(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        )
    if number != broker_id:
        raise RejectedChange(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker_id}, but received {name}",
        )


def _topic_key(name: str) -> ConfigKey | None:
    topic_key = topic_keys().get(name)
    return topic_key[0] if topic_key else None


def _invalid(kind: str, name: str, wrong: ConfigError) -> RejectedChange:
    return RejectedChange(
        ErrorCode.INVALID_CONFIG,
        f"Invalid config value for resource ConfigResource(type={kind}, name='{name}'): {wrong}",
    )


def _unknown_kind(asked: Alteration) -> RejectedChange:
    if asked.kind == CLIENT_METRICS:
        why = (
            "AlterConfigs is only supported for topics and brokers, but resource type is "
            "CLIENT_METRICS"
        )
    else:
        why = f"Unknown resource type {asked.kind}"
    return RejectedChange(ErrorCode.INVALID_REQUEST, why)
