"""CreateTopics, DeleteTopics and auto-creation: requests in, TopicAdmin calls, responses out."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Protocol
from uuid import UUID

from urteil.broker.base.offload import run_pipelined, windows, yield_items
from urteil.broker.base.remote_time import await_remote
from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.config.descriptions import topic_settings
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.controller.mutation_quota import Take
from urteil.broker.controller.term import Term
from urteil.broker.controller.topic_admin import OVER_QUOTA, NewTopic, TopicAdmin, TopicResult
from urteil.broker.security.acls.acl_model import Allowed, Operation
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from urteil.broker.wire.primitives import ZERO_UUID

log = logging.getLogger("topics")

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
AUTO_CREATE_TIMEOUT_S = 3.0
ZOOKEEPER_PRESENT_S = 1.0
IDS_FROM = 6  # DeleteTopics by id
DISABLED_FROM = 3  # DeleteTopics knows TOPIC_DELETION_DISABLED

UNTRIED = (ErrorCode.INVALID_REQUEST, ErrorCode.TOPIC_AUTHORIZATION_FAILED)

Result = CreateTopicsResponse.CreatableTopicResult
Deleted = DeleteTopicsResponse.DeletableTopicResult


class ActiveController(Protocol):
    """The part of `Controller` that these requests use."""

    @property
    def admin(self) -> TopicAdmin: ...

    @property
    def term(self) -> Term | None: ...


async def auto_create(
    admin: TopicAdmin, config: BrokerConfig, names: Sequence[str]
) -> dict[str, ErrorCode]:
    """See `Controller.auto_create`."""
    errors = dict.fromkeys(names, ErrorCode.LEADER_NOT_AVAILABLE)
    try:
        async with asyncio.timeout(AUTO_CREATE_TIMEOUT_S):
            for name in errors:
                outcome = await admin.create(_auto_created_topic(name, config))
                if outcome.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    errors[name] = outcome.error
    except TimeoutError:  # ZooKeeper is unreachable; Metadata must not wait for it
        return errors
    return errors


def _auto_created_topic(name: str, config: BrokerConfig) -> NewTopic:
    if name == OFFSETS_TOPIC:
        return NewTopic(
            name=name,
            partitions=config.offsets_topic_num_partitions,
            replication_factor=config.offsets_topic_replication_factor,
            configs=(
                ("compression.type", "producer"),
                ("cleanup.policy", "compact"),
                ("segment.bytes", str(config.offsets_topic_segment_bytes)),
            ),
        )
    if name == TRANSACTIONS_TOPIC:
        return NewTopic(
            name=name,
            partitions=config.transaction_state_log_num_partitions,
            replication_factor=config.transaction_state_log_replication_factor,
            configs=(
                ("compression.type", "uncompressed"),
                ("cleanup.policy", "compact"),
                ("min.insync.replicas", str(config.transaction_state_log_min_isr)),
                ("segment.bytes", str(config.transaction_state_log_segment_bytes)),
                ("unclean.leader.election.enable", "false"),
            ),
        )
    return NewTopic(name=name)


async def create_topics(
    controller: ActiveController,
    config: BrokerConfig,
    request: CreateTopicsRequest,
    allowed: Allowed,
    take: Take,
) -> CreateTopicsResponse:
    """Create each topic; an error of one does not affect the others."""
    requested = Counter(topic.name for topic in request.topics)
    results: dict[str, Result] = {}
    names = list(requested)
    creatable: AbstractSet[str] = frozenset()
    describable: AbstractSet[str] = frozenset()
    if controller.term is not None:
        creatable = allowed(Operation.CREATE, names)
        describable = allowed(Operation.DESCRIBE_CONFIGS, names)
    to_create: list[CreateTopicsRequest.CreatableTopic] = []
    async for topic in yield_items(request.topics):
        if controller.term is None:
            results[topic.name] = _error(topic.name, ErrorCode.NOT_CONTROLLER, "")
        elif requested[topic.name] > 1:
            results[topic.name] = _error(
                topic.name, ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic."
            )
        elif topic.name not in creatable:
            results[topic.name] = _error(
                topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."
            )
        else:
            to_create.append(topic)
    results |= await _create(controller, config, request, to_create, take)
    async for name in yield_items(names):
        if name not in describable:
            results[name] = _without_configs(results[name])
    made = [name for name, result in results.items() if result.error_code == ErrorCode.NONE]
    if made and not request.validate_only:
        for name in await wait_for_topics(controller, made, request.timeout_ms, Term.has_leaders):
            results[name] = _error(name, ErrorCode.REQUEST_TIMED_OUT)
    return CreateTopicsResponse(topics=[results[topic.name] for topic in request.topics])


def _without_configs(result: Result) -> Result:
    """The result for a principal without DESCRIBE_CONFIGS; a failed topic has no configs."""
    if result.error_code not in (ErrorCode.NONE, *UNTRIED):
        return result
    return replace(
        result,
        num_partitions=-1,
        replication_factor=-1,
        configs=(),
        topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )


async def _create(
    controller: ActiveController,
    config: BrokerConfig,
    request: CreateTopicsRequest,
    topics: Sequence[CreateTopicsRequest.CreatableTopic],
    take: Take,
) -> dict[str, Result]:
    """Create topics, a window at a time. Once ZooKeeper does not answer, the rest is not tried."""
    results = {
        topic.name: _error(topic.name, ErrorCode.REQUEST_TIMED_OUT)
        async for topic in yield_items(topics)
    }
    if not topics:
        return results
    new = [_new_topic(topic) async for topic in yield_items(topics)]
    try:
        async with _zookeeper_within(request.timeout_ms):
            view = await controller.admin.view(new)

        async def create(topic: NewTopic) -> Result:
            outcome = await controller.admin.create_within(
                view, topic, validate_only=request.validate_only, take=take
            )
            return _result(topic.name, outcome, config)

        for window in windows(new):
            async with _zookeeper_within(request.timeout_ms):
                results |= {result.name: result for result in await run_pipelined(create, window)}
    except TimeoutError:
        log.warning("ZooKeeper does not answer: topics are not created")
    return results


def _zookeeper_within(timeout_ms: int) -> asyncio.Timeout:
    """A deadline for ZooKeeper: the request's timeout, at least ZOOKEEPER_PRESENT_S.

    Apache Kafka waits until ZooKeeper is back, whatever the timeout, and its thread is stuck.
    """
    return asyncio.timeout(max(ZOOKEEPER_PRESENT_S, timeout_ms / 1000))


def _new_topic(topic: CreateTopicsRequest.CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment={
            assignment.partition_index: tuple(assignment.broker_ids)
            for assignment in topic.assignments
        },
        configs=[(config.name, config.value) for config in topic.configs],
    )


def _error(name: str, error: ErrorCode, message: str | None = None) -> Result:
    return Result(name=name, error_code=error, error_message=message, configs=())


def _result(name: str, outcome: TopicResult, config: BrokerConfig) -> Result:
    if outcome.error is not ErrorCode.NONE:
        return _error(name, outcome.error, outcome.message)
    return Result(
        name=name,
        topic_id=outcome.topic_id,
        error_message=None,
        num_partitions=outcome.partitions,
        replication_factor=outcome.replication_factor,
        configs=_configs(outcome.configs, config.properties),
    )


def _configs(
    overrides: Mapping[str, str], properties: LiveProperties
) -> list[CreateTopicsResponse.CreatableTopicConfigs]:
    """The effective settings, each with its source."""
    return [
        CreateTopicsResponse.CreatableTopicConfigs(
            name=topic_setting.name,
            value=topic_setting.value,
            read_only=topic_setting.read_only,
            config_source=topic_setting.source,
            is_sensitive=topic_setting.sensitive,
        )
        for topic_setting in topic_settings(properties, overrides)
    ]


async def delete_topics(
    controller: ActiveController,
    config: BrokerConfig,
    request: DeleteTopicsRequest,
    version: int,
    allowed: Allowed,
    take: Take,
) -> DeleteTopicsResponse:
    """By name or, from version 6 on, by id."""
    requested = (
        list(request.topics)
        if version >= IDS_FROM
        else [DeleteTopicsRequest.DeleteTopicState(name=name) for name in request.topic_names]
    )
    rights = _rights_to_delete(controller, requested, allowed)
    error = _deletion_error(controller, config, requested, version)
    results = [
        Deleted(name=topic.name, topic_id=topic.topic_id, error_code=error)
        if error is not ErrorCode.NONE
        else await _request_deletion(controller, topic, request.timeout_ms, rights, take)
        for topic in requested
    ]
    accepted = [
        result.name for result in results if result.error_code == ErrorCode.NONE and result.name
    ]
    timed_out = (
        await wait_for_topics(controller, accepted, request.timeout_ms, Term.is_deleted)
        if accepted
        else []
    )
    return DeleteTopicsResponse(
        responses=[
            Deleted(
                name=result.name, topic_id=result.topic_id, error_code=ErrorCode.REQUEST_TIMED_OUT
            )
            if result.name in timed_out and result.error_code == ErrorCode.NONE
            else result
            for result in results
        ]
    )


def _rights_to_delete(
    controller: ActiveController,
    requested: Sequence[DeleteTopicsRequest.DeleteTopicState],
    allowed: Allowed,
) -> tuple[AbstractSet[str], AbstractSet[str]]:
    """The topics that may be described, and the topics that may be deleted."""
    if controller.term is None:
        return frozenset(), frozenset()
    known = controller.term.context.names
    requested_names = (
        state.name if state.name is not None else known.get(state.topic_id) for state in requested
    )
    names = [name for name in requested_names if name is not None]
    return allowed(Operation.DESCRIBE, names), allowed(Operation.DELETE, names)


def _deletion_error(
    controller: ActiveController,
    config: BrokerConfig,
    requested: Sequence[DeleteTopicsRequest.DeleteTopicState],
    version: int,
) -> ErrorCode:
    """The error of the request as a whole."""
    if controller.term is None:
        return ErrorCode.NOT_CONTROLLER
    if not config.delete_topic_enable:
        known = version >= DISABLED_FROM
        return ErrorCode.TOPIC_DELETION_DISABLED if known else ErrorCode.INVALID_REQUEST
    if any(state.name is not None and state.topic_id != ZERO_UUID for state in requested):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


async def _request_deletion(
    controller: ActiveController,
    requested: DeleteTopicsRequest.DeleteTopicState,
    timeout_ms: int,
    rights: tuple[AbstractSet[str], AbstractSet[str]],
    take: Take,
) -> Deleted:
    term = controller.term
    name, topic_id = requested.name, requested.topic_id
    if term is None:  # the term ended meanwhile
        error = ErrorCode.NOT_CONTROLLER
    elif name is None and topic_id == ZERO_UUID:
        error = (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )  # a topic without name and id is authorized for nobody
    else:
        context = term.context
        name = context.names.get(topic_id) if name is None else name
        if name is not None:
            describable, deletable = rights
            if requested.name is None and name not in describable:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                return Deleted(name=None, topic_id=topic_id, error_code=error)
            if name not in deletable:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                return Deleted(name=name, topic_id=topic_id, error_code=error)
        if name in context.topics and name not in context.deleting:
            if not take(len(context.topics[name].partitions)):
                return _over_quota(name, topic_id)
            try:
                async with _zookeeper_within(timeout_ms):
                    await controller.admin.request_deletion(name)
            except TimeoutError:
                return Deleted(name=name, topic_id=topic_id, error_code=ErrorCode.REQUEST_TIMED_OUT)
            return Deleted(name=name, topic_id=topic_id)
        error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return Deleted(name=name, topic_id=topic_id, error_code=error)


def _over_quota(name: str, topic_id: UUID) -> Deleted:
    return Deleted(
        name=name,
        topic_id=topic_id,
        error_code=OVER_QUOTA.error,
        error_message=OVER_QUOTA.message,
    )


async def wait_for_topics(
    controller: ActiveController,
    names: Sequence[str],
    timeout_ms: int,
    done: Callable[[Term, str], bool],
) -> list[str]:
    """Wait until `done` holds for all topics and the controller's own broker has the metadata.

    Returns the topics that are not done after `timeout_ms` or at the end of the term.
    """
    term = controller.term
    if term is None or timeout_ms <= 0:
        return list(names)

    try:
        async with asyncio.timeout(max(0, timeout_ms) / 1000):
            async for name in yield_items(names):
                while not (done(term, name) or term.closed):
                    await await_remote(term.progress())
            await term.senders.wait_for_answers(term.context.controller_id)
    except TimeoutError:
        pass
    return [name async for name in yield_items(names) if not done(term, name)]
