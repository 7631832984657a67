"""Creation and deletion of topics in ZooKeeper: the validation of `ZkAdminManager`, plain writes.

Any broker may do this (auto-creation does). The controller's watches see the znodes; it elects the
leaders and deletes the replicas.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from urteil.broker.config.values import ConfigError
from urteil.broker.controller.api_error import ApiError, ApiException, assignment_exception
from urteil.broker.controller.mutation_quota import Take, unlimited
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

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
MAX_NAME = 249


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

    async def create(
        self, topic: NewTopic, *, validate_only: bool = False, take: Take = unlimited
    ) -> TopicResult:
        """Write a topic's configuration and assignment in one multi."""
        try:
            partitions, configs = await self._validate(topic)
            topic_id = ZERO_UUID if validate_only else self._make_id()
            if not validate_only:
                if not take(len(partitions)):
                    return TopicResult(error=OVER_QUOTA.error, message=OVER_QUOTA.message)
                assignment = TopicAssignment(partitions=partitions, topic_id=topic_id)
                await self._write(topic.name, assignment, configs)
        except ApiException as refused:
            return TopicResult(error=refused.error, message=refused.message)
        except NodeTooLarge as wrong:
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

    async def _validate(self, topic: NewTopic) -> tuple[dict[int, tuple[int, ...]], dict[str, str]]:
        """Validate in Apache Kafka's order: the first error is reported."""
        if is_legal(topic.name) and await self._zk.exists(znodes.topic_path(topic.name)):
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
        partitions = dict(sorted(topic.assignment.items())) or await self._assign(topic)
        check_name(topic.name)
        await self._check_collision(topic.name)
        check_assignment(partitions)
        try:
            return partitions, validate_topic_configs(topic.configs, self._properties)
        except (InvalidTopicConfig, ConfigError) as wrong:
            raise ApiException(ErrorCode.INVALID_CONFIG, str(wrong)) from None

    async def _check_collision(self, name: str) -> None:
        if "." in name or "_" in name:
            others = await self._zk.children(znodes.TOPICS)
            if name in others:  # another broker created it meanwhile
                raise _exists(name)
            alike = [one for one in others if one.replace(".", "_") == name.replace(".", "_")]
            if alike:
                raise ApiException(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Topic '{name}' collides with existing topics: {', '.join(alike)}",
                )

    async def add_partitions(
        self,
        name: str,
        count: int,
        replicas: Sequence[tuple[int, ...]] | None,
        *,
        validate_only: bool = False,
        take: Take = unlimited,
    ) -> TopicResult:
        """Extend a topic to `count` partitions, the new ones with `replicas` if given.

        A concurrent change of the same znode is never overwritten.
        """
        try:
            while True:
                found, version = await self._read(name)
                more = new_partitions(name, found, count, replicas, await self._racks())
                wanted = replace(found, partitions={**found.partitions, **more})
                if not validate_only and not take(len(more)):
                    return TopicResult(error=OVER_QUOTA.error, message=OVER_QUOTA.message)
                if validate_only or await self._replace(name, wanted, version):
                    return TopicResult(partitions=count)
        except ApiException as refused:
            return TopicResult(error=refused.error, message=refused.message)
        except NodeTooLarge as wrong:
            return TopicResult(error=ErrorCode.INVALID_PARTITIONS, message=str(wrong))

    async def _read(self, name: str) -> tuple[TopicAssignment, int]:
        try:
            data, stat = await self._zk.get(znodes.topic_path(name))
        except NoNodeError:
            raise ApiException(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            ) from None
        return znodes.decode_topic(data), stat.version

    async def _replace(self, name: str, wanted: TopicAssignment, version: int) -> bool:
        """Write at this version; False if the topic changed meanwhile."""
        try:
            await self._zk.set(znodes.topic_path(name), znodes.encode_topic(wanted), version)
        except (BadVersionError, NoNodeError):
            return False
        except LOST:
            return (await self._read(name))[0] == wanted
        return True

    async def _racks(self) -> dict[int, str | None]:
        return {info.id: info.rack for info in await read_brokers(self._zk)}

    async def _assign(self, topic: NewTopic) -> dict[int, tuple[int, ...]]:
        racks = await self._racks()
        count = topic.partitions if topic.partitions != -1 else self._default_partitions
        factor = topic.replication_factor
        factor = factor if factor != -1 else self._default_replication_factor
        try:
            return assign_replicas(racks, count, factor, self._rng)
        except AssignmentError as wrong:
            raise assignment_exception(wrong) from None

    async def _write(
        self, name: str, assignment: TopicAssignment, configs: Mapping[str, str]
    ) -> None:
        """After a lost answer, the topic id shows whether the write was applied."""
        made = Create(znodes.topic_path(name), znodes.encode_topic(assignment))
        path, data = znodes.topic_config_path(name), znodes.encode_config(configs)
        while True:
            there = await self._zk.exists(path) is not None
            config: Op = Set(path, data) if there else Create(path, data)
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

    async def _is_written(self, name: str, assignment: TopicAssignment) -> bool:
        try:
            data, _ = await self._zk.get(znodes.topic_path(name))
        except NoNodeError:
            return False
        return znodes.decode_topic(data).topic_id == assignment.topic_id

    def _make_id(self) -> UUID:
        """A random id whose text does not begin with a dash, which a command line would parse as an
        option (`Uuid.randomUuid`)."""
        while True:
            made = UUID(int=self._rng.getrandbits(128), version=4)
            if not znodes.encode_uuid(made).startswith("-"):
                return made


def _exists(name: str) -> ApiException:
    return ApiException(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def is_legal(name: str) -> bool:
    """Whether a topic may have this name."""
    try:
        check_name(name)
    except ApiException:
        return False
    return True


def check_name(name: str) -> None:
    """Raises ApiException with the message of `Topic.validate`."""
    why = None
    if not name:
        why = "Topic name is invalid: the empty string is not allowed"
    elif name in (".", ".."):
        why = f"Topic name is invalid: '{name}' is not allowed"
    elif len(name) > MAX_NAME:
        why = (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed "
            f"length {MAX_NAME}"
        )
    elif not _LEGAL_NAME.fullmatch(name):
        why = (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    if why is not None:
        raise ApiException(ErrorCode.INVALID_TOPIC_EXCEPTION, why)


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
