"""Creation and deletion of topics in ZooKeeper: the validation of `ZkAdminManager`, plain writes.

Any broker may do this (auto-creation does). The controller's watches see the znodes; it elects the
leaders and deletes the replicas.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self
from uuid import UUID

from urteil.broker.base.topic_names import is_valid, name_error
from urteil.broker.config.values import ConfigError
from urteil.broker.controller.api_error import ApiError, ApiException, assignment_exception
from urteil.broker.controller.mutation_quota import Take, allow_all
from urteil.broker.controller.new_partitions import new_partitions
from urteil.broker.controller.replica_placement import AssignmentError, assign_replicas
from urteil.broker.controller.topic_configs import (
    InvalidTopicConfig,
    validate_topic_configs,
    without_nulls,
)
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.primitives import ZERO_UUID
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.registration import read_brokers
from urteil.broker.zookeeper.session import (
    LOST,
    BadVersionError,
    Create,
    MultiFailed,
    NodeExistsError,
    NodeTooLarge,
    NoNodeError,
    Session,
    Set,
)
from urteil.broker.zookeeper.session_types import Op
from urteil.broker.zookeeper.znodes import TopicAssignment

log = logging.getLogger("topics")

OVER_QUOTA = ApiError(
    ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded."
)

LISTED_FROM = 20
"""So many new names are compared with the list of all topics; fewer are looked up one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A requested topic. Counts of -1 mean the defaults; `assignment` excludes counts."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignment: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    configs: Sequence[tuple[str, str | None]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicResult:
    """The error, or the counts, id and configs of the topic that was (or could be) created."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: UUID = ZERO_UUID
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Live brokers with their racks, and names of topics: what one request compares new topics
    with. `topics` has all topics, or those alone of which the request has the names."""

    racks: Mapping[int, str | None]
    topics: dict[str, list[str]]

    @classmethod
    async def read(cls, zk: Session, topics: Sequence[NewTopic]) -> Self:
        """Read in a few round trips, however many the topics are."""
        names = [topic.name for topic in topics if is_valid(topic.name)]
        brokers = await read_brokers(zk)
        if len(names) >= LISTED_FROM or any(map(_has_collision_chars, names)):
            existing = await zk.children(znodes.TOPICS)
        else:
            stats = await asyncio.gather(*(zk.exists(znodes.topic_path(name)) for name in names))
            existing = [name for name, stat in zip(names, stats, strict=True) if stat is not None]
        view = cls({info.id: info.rack for info in brokers}, {})
        for name in existing:
            view.add(name)
        return view

    def add(self, name: str) -> None:
        self.alike(name).append(name)

    def alike(self, name: str) -> list[str]:
        """The topics whose metrics have this name too: a dot counts as an underscore."""
        return self.topics.setdefault(name.replace(".", "_"), [])


def no_such_topic(name: str) -> TopicResult:
    return TopicResult(
        error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=f"The topic '{name}' does not exist."
    )


class TopicAdmin:
    """Validates and writes; errors are values."""

    def __init__(
        self,
        zk: Session,
        rng: random.Random,
        *,
        default_partitions: int,
        default_replication_factor: int,
        properties: Mapping[str, str],
    ) -> None:
        self._zk = zk
        self._properties = properties
        self._rng = rng
        self._default_partitions = default_partitions
        self._default_replication_factor = default_replication_factor

    async def create(self, topic: NewTopic) -> TopicResult:
        """Create one topic."""
        return await self.create_within(await self.view([topic]), topic)

    async def view(self, topics: Sequence[NewTopic]) -> ClusterView:
        """The cluster as the creation of these topics needs it."""
        return await ClusterView.read(self._zk, topics)

    async def create_within(
        self,
        view: ClusterView,
        topic: NewTopic,
        *,
        validate_only: bool = False,
        take: Take = allow_all,
    ) -> TopicResult:
        """Write a topic's configuration and assignment in one multi, and add it to the view.

        Validates without suspension, so that topics that are created side by side see each other.
        """
        try:
            partitions, configs = self._validate(topic, view)
            topic_id = ZERO_UUID if validate_only else self.make_topic_id()
            if not validate_only:
                if not take(len(partitions)):
                    return TopicResult(error=OVER_QUOTA.error, message=OVER_QUOTA.message)
                assignment = TopicAssignment(partitions=partitions, topic_id=topic_id)
                view.add(topic.name)
                await self._write(topic.name, assignment, configs)
        except ApiException as refused:
            return TopicResult(error=refused.error, message=refused.message)
        except NodeTooLarge as wrong:
            view.alike(topic.name).remove(topic.name)
            return TopicResult(error=ErrorCode.INVALID_PARTITIONS, message=str(wrong))
        return TopicResult(
            topic_id=topic_id,
            partitions=len(partitions),
            replication_factor=len(partitions[0]),
            configs=configs,
        )

    async def request_deletion(self, topic: str) -> None:
        """Write the deletion request of an existing topic."""
        while True:
            try:
                await self._zk.create(znodes.delete_topic_path(topic))
            except NodeExistsError:
                return
            except LOST:
                continue
            return

    def _validate(
        self, topic: NewTopic, view: ClusterView
    ) -> tuple[dict[int, tuple[int, ...]], dict[str, str]]:
        """Validate in Apache Kafka's order: the first error is reported."""
        if topic.name in view.alike(topic.name):
            raise _exists(topic.name)
        try:
            without_nulls(topic.configs)
        except InvalidTopicConfig as wrong:
            raise ApiException(ErrorCode.INVALID_CONFIG, str(wrong)) from None
        counts_given = topic.partitions != -1 or topic.replication_factor != -1
        if topic.assignment and counts_given:
            raise ApiException(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time.",
            )
        partitions = dict(sorted(topic.assignment.items())) or self._assign(topic, view)
        _check_name(topic.name)
        _check_collision(topic.name, view)
        check_assignment(partitions)
        try:
            return partitions, validate_topic_configs(topic.configs, self._properties)
        except (InvalidTopicConfig, ConfigError) as wrong:
            raise ApiException(ErrorCode.INVALID_CONFIG, str(wrong)) from None

    async def add_partitions(
        self,
        racks: Mapping[int, str | None],
        name: str,
        count: int,
        replicas: Sequence[tuple[int, ...]] | None,
        *,
        validate_only: bool = False,
        take: Take = allow_all,
    ) -> TopicResult:
        """Extend a topic to `count` partitions, the new ones with `replicas` if given, else placed
        on the live brokers (`racks`).

        A concurrent change of the same znode is never overwritten.
        """
        try:
            while True:
                assignment, version = await self._read(name)
                more = new_partitions(name, assignment, count, replicas, racks)
                grown = replace(assignment, partitions={**assignment.partitions, **more})
                if not validate_only and not take(len(more)):
                    return TopicResult(error=OVER_QUOTA.error, message=OVER_QUOTA.message)
                if validate_only or await self._replace(name, grown, version):
                    return TopicResult(partitions=count)
        except ApiException as refused:
            return TopicResult(error=refused.error, message=refused.message)
        except NodeTooLarge as wrong:
            return TopicResult(error=ErrorCode.INVALID_PARTITIONS, message=str(wrong))

    async def missing_topics(self, names: Sequence[str]) -> set[str]:
        """The topics that do not exist, by one list of all topics; of few names none is looked up,
        since the reading of each shows it."""
        if len(names) < LISTED_FROM:
            return set()
        return set(names).difference(await self._zk.children(znodes.TOPICS))

    async def _read(self, name: str) -> tuple[TopicAssignment, int]:
        try:
            data, stat = await self._zk.get(znodes.topic_path(name))
        except NoNodeError:
            missing = no_such_topic(name)
            raise ApiException(missing.error, missing.message or "") from None
        return znodes.decode_topic(data), stat.version

    async def _replace(self, name: str, assignment: TopicAssignment, version: int) -> bool:
        """Write at this version; False if the topic changed meanwhile."""
        try:
            await self._zk.set(znodes.topic_path(name), znodes.encode_topic(assignment), version)
        except (BadVersionError, NoNodeError):
            return False
        except LOST:
            return (await self._read(name))[0] == assignment
        return True

    async def racks(self) -> dict[int, str | None]:
        """The live brokers with their racks."""
        return {info.id: info.rack for info in await read_brokers(self._zk)}

    def _assign(self, topic: NewTopic, view: ClusterView) -> dict[int, tuple[int, ...]]:
        count = topic.partitions if topic.partitions != -1 else self._default_partitions
        factor = topic.replication_factor
        factor = factor if factor != -1 else self._default_replication_factor
        try:
            return assign_replicas(view.racks, count, factor, self._rng)
        except AssignmentError as wrong:
            raise assignment_exception(wrong) from None

    async def _write(
        self, name: str, assignment: TopicAssignment, configs: Mapping[str, str]
    ) -> None:
        """After a lost answer, the topic id shows whether the write was applied."""
        made = Create(znodes.topic_path(name), znodes.encode_topic(assignment))
        path, data = znodes.topic_config_path(name), znodes.encode_config(configs)
        config: Op = Create(path, data)
        while True:
            try:
                await self._zk.multi([made, config])
                return
            except LOST:
                if await self._is_written(name, assignment):
                    return
            except MultiFailed as failure:
                if failure.index == 0:
                    if await self._is_written(name, assignment):
                        return
                    raise _exists(name) from None
                # settings stay when a topic is created anew without its deletion
                has_settings = isinstance(failure.cause, NodeExistsError)
                config = Set(path, data) if has_settings else Create(path, data)

    async def _is_written(self, name: str, assignment: TopicAssignment) -> bool:
        try:
            data, _ = await self._zk.get(znodes.topic_path(name))
        except NoNodeError:
            return False
        return znodes.decode_topic(data).topic_id == assignment.topic_id

    def make_topic_id(self) -> UUID:
        """A random id whose text does not begin with a dash, which a command line would parse as an
        option (`Uuid.randomUuid`)."""
        while True:
            made = UUID(int=self._rng.getrandbits(128), version=4)
            if not znodes.encode_uuid(made).startswith("-"):
                return made


def _exists(name: str) -> ApiException:
    return ApiException(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def _check_name(name: str) -> None:
    why = name_error(name)
    if why is not None:
        raise ApiException(ErrorCode.INVALID_TOPIC_EXCEPTION, why)


def _has_collision_chars(name: str) -> bool:
    return "." in name or "_" in name


def _check_collision(name: str, view: ClusterView) -> None:
    alike = view.alike(name) if _has_collision_chars(name) else ()
    if alike:
        raise ApiException(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topics: {', '.join(alike)}",
        )


def check_assignment(partitions: Mapping[int, tuple[int, ...]]) -> None:
    """Partitions count from 0 and have equally many distinct replicas. Raises ApiException."""
    why = None
    if len({len(replicas) for replicas in partitions.values()}) != 1:
        why = "All partitions should have the same number of replicas"
    elif any(len(set(replicas)) != len(replicas) for replicas in partitions.values()):
        why = "Duplicate replica assignment found"
    elif any(not replicas for replicas in partitions.values()):
        why = "A partition needs at least one replica"
    elif sorted(partitions) != list(range(len(partitions))):
        why = "partitions should be a consecutive 0-based integer sequence"
    if why is not None:
        raise ApiException(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
