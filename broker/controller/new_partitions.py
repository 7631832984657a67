"""The replicas of partitions that are added to a topic.

Source: `ZkAdminManager.createPartitions`, `AdminZkClient.createNewPartitionsAssignment`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from urteil.broker.controller.api_error import ApiException, assignment_exception
from urteil.broker.controller.replica_placement import AssignmentError, assign_more
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.zookeeper.znodes import TopicAssignment


def new_partitions(
    name: str,
    topic: TopicAssignment,
    count: int,
    replicas: Sequence[tuple[int, ...]] | None,
    racks: Mapping[int, str | None],
) -> dict[int, tuple[int, ...]]:
    """The replicas of the partitions from the existing ones up to `count`: `replicas`, or the
    continuation of the topic's placement. `racks` maps the live brokers to their racks. Raises
    ApiException."""
    existing = len(topic.partitions)
    _check_count(name, topic, count)
    if replicas is not None:
        _check_given(replicas, count - existing, racks)
    first = topic.partitions.get(0)
    if first is None:
        raise ApiException(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Unexpected existing replica assignment for topic '{name}', partition id 0 is "
            "missing.",
        )
    if replicas is not None:
        given = dict(enumerate(replicas, existing))
        _check_sizes(given, len(first))
        return given
    try:
        return assign_more(racks, existing, first, count - existing)
    except AssignmentError as wrong:
        raise assignment_exception(wrong) from None


def _check_count(name: str, topic: TopicAssignment, count: int) -> None:
    existing = len(topic.partitions)
    if topic.adding or topic.removing:
        raise ApiException(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"A partition reassignment is in progress for the topic '{name}'.",
        )
    if count < existing:
        raise ApiException(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {existing} partitions, which is higher than the requested "
            f"{count}.",
        )
    if count == existing:
        raise ApiException(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {existing} partitions."
        )


def _check_given(replicas: Sequence[tuple[int, ...]], missing: int, alive: Collection[int]) -> None:
    unknown = sorted({replica for ids in replicas for replica in ids} - set(alive))
    why = None
    if unknown:
        why = f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}."
    elif len(replicas) != missing:
        why = (
            f"Increasing the number of partitions by {missing} "
            f"but {len(replicas)} assignments provided."
        )
    if why is not None:
        raise ApiException(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def _check_sizes(given: Mapping[int, tuple[int, ...]], factor: int) -> None:
    for partition, ids in given.items():
        if not ids:
            why = f"Cannot have replication factor of 0 for partition id {partition}."
            raise ApiException(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
        if len(set(ids)) != len(ids):
            why = f"Duplicate brokers not allowed in replica assignment: {_comma_list(ids)} "
            why += f"for partition id {partition}."
            raise ApiException(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
    others = {partition: len(ids) for partition, ids in given.items() if len(ids) != factor}
    if others:
        why = (
            f"Inconsistent replication factor between partitions, partition 0 has {factor} while "
            f"partitions [{_comma_list(others)}] have replication factors "
            f"[{_comma_list(others.values())}], respectively."
        )
        raise ApiException(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)


def _comma_list(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
