"""Placement of a new topic's replicas: Apache Kafka's `AdminUtils`, with the same random draws."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

MAX_PARTITIONS = 100_000
"""A znode (1 MiB) cannot hold the replicas of more. Apache Kafka tries even 2^31, and loses its
thread or its heap."""


class AssignmentError(ValueError):
    """No placement is possible; the message is Apache Kafka's, if it has one."""


class InvalidPartitions(AssignmentError):
    pass


class InvalidReplicationFactor(AssignmentError):
    pass


class MixedRacks(AssignmentError):
    pass


def assign_replicas(
    racks: Mapping[int, str | None], partitions: int, replication_factor: int, rng: random.Random
) -> dict[int, tuple[int, ...]]:
    """Replicas of every partition, the first of each its preferred leader.

    `racks` maps the live brokers to their racks. Leaders rotate over the brokers from a random
    one, followers from a random shift that grows with each round. With racks, each rack gets a
    replica before any gets a second. Raises AssignmentError.
    """
    brokers = _check_placement(racks, partitions, replication_factor)
    start, shift = rng.randrange(len(brokers)), rng.randrange(len(brokers))
    return _assign(brokers, racks, range(partitions), replication_factor, start, shift)


def assign_more(
    racks: Mapping[int, str | None], existing: int, first: Sequence[int], count: int
) -> dict[int, tuple[int, ...]]:
    """Replicas of `count` partitions beyond the `existing` ones of a topic.

    `first` has the replicas of its partition 0: the new partitions have as many, and continue from
    its leader. Apache Kafka counts the leader's position among all brokers by id, even with racks.
    Raises AssignmentError.
    """
    brokers = _check_placement(racks, count, len(first))
    start = next((n for n, rack in enumerate(sorted(racks)) if rack >= first[0]), 0)
    return _assign(brokers, racks, range(existing, existing + count), len(first), start, start)


def _check_placement(
    racks: Mapping[int, str | None], partitions: int, replication_factor: int
) -> list[int]:
    """The brokers in the order of rotation."""
    if partitions <= 0:
        raise InvalidPartitions("Number of partitions must be larger than 0.")
    if partitions > MAX_PARTITIONS:
        raise InvalidPartitions(f"Number of partitions must not be larger than {MAX_PARTITIONS}.")
    if replication_factor <= 0:
        raise InvalidReplicationFactor("Replication factor must be larger than 0.")
    if replication_factor > len(racks):
        raise InvalidReplicationFactor(
            f"Replication factor: {replication_factor} larger than available brokers: {len(racks)}."
        )
    known = _known_racks(racks)
    if known and len(known) < len(racks):
        raise MixedRacks("Not all brokers have rack information for replica rack aware assignment.")
    return rack_alternated(known) if known else sorted(racks)


def _known_racks(racks: Mapping[int, str | None]) -> dict[int, str]:
    return {broker: rack for broker, rack in racks.items() if rack is not None}


def _assign(
    brokers: Sequence[int],
    racks: Mapping[int, str | None],
    partitions: range,
    replication_factor: int,
    start: int,
    shift: int,
) -> dict[int, tuple[int, ...]]:
    known = _known_racks(racks)
    place = _rack_aware if known else _rack_unaware
    assignment = {}
    for partition in partitions:
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        first = (partition + start) % len(brokers)
        assignment[partition] = place(brokers, known, first, shift, replication_factor)
    return assignment


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """Brokers in an order that alternates racks; within a rack by id."""
    by_rack: dict[str, list[int]] = defaultdict(list)
    for broker in sorted(racks):
        by_rack[racks[broker]].append(broker)
    longest = max(len(brokers) for brokers in by_rack.values())
    return [
        by_rack[rack][place]
        for place in range(longest)
        for rack in sorted(by_rack)
        if place < len(by_rack[rack])
    ]


def _rack_unaware(
    brokers: Sequence[int], _racks: Mapping[int, str], first: int, shift: int, count: int
) -> tuple[int, ...]:
    others = (brokers[_index(first, shift, j, len(brokers))] for j in range(count - 1))
    return (brokers[first], *others)


def _rack_aware(
    brokers: Sequence[int], racks: Mapping[int, str], first: int, shift: int, count: int
) -> tuple[int, ...]:
    rack_count = len(set(racks.values()))
    replicas, used_racks = [brokers[first]], {racks[brokers[first]]}
    step = 0
    while len(replicas) < count:
        broker = brokers[_index(first, shift * rack_count, step, len(brokers))]
        step += 1
        rack_is_due = racks[broker] not in used_racks or len(used_racks) == rack_count
        if rack_is_due and broker not in replicas:
            replicas.append(broker)
            used_racks.add(racks[broker])
    return tuple(replicas)


def _index(first: int, shift: int, step: int, count: int) -> int:
    return (first + 1 + (shift + step) % (count - 1)) % count
