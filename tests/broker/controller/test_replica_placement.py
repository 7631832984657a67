from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urteil.broker.controller.replica_placement import (
    InvalidPartitions,
    InvalidReplicationFactor,
    MixedRacks,
    assign_replicas,
    rack_alternated,
)


class Draws(random.Random):
    """Start index and shift as given: Kafka's own tests fix them to 0."""

    def __init__(self, *draws: int) -> None:
        super().__init__()
        self._draws = list(draws)

    def randrange(self, *_args: int, **_kwargs: int) -> int:  # type: ignore[override]
        return self._draws.pop(0)


def test_without_racks_as_in_kafkas_admin_utils() -> None:
    """The table in the comment of `AdminUtils.assignReplicasToBrokers`."""
    made = assign_replicas(dict.fromkeys(range(5)), 10, 3, Draws(0, 0))
    assert list(made.values()) == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_with_racks_as_in_kafkas_admin_utils() -> None:
    """The second table there: brokers alternate between racks, followers shift by racks."""
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert rack_alternated({k: str(v) for k, v in racks.items()}) == [0, 3, 1, 5, 4, 2]
    made = assign_replicas(dict(racks), 7, 3, Draws(0, 0))
    assert list(made.values()) == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


@pytest.mark.parametrize("seed", range(200))
def test_placement_on_two_racks_is_as_even_as_apache_kafka(seed: int) -> None:
    """10 x 3 over 6 brokers: replicas [4,4,5,5,6,6] or better, leaders [1,1,2,2,2,2]."""
    racks = {broker: f"r{broker % 2}" for broker in range(1, 7)}
    made = assign_replicas(dict(racks), 10, 3, random.Random(seed))
    spread = sorted(Counter(replica for replicas in made.values() for replica in replicas).values())
    leaders = sorted(Counter(replicas[0] for replicas in made.values()).values())
    assert spread in ([4, 4, 5, 5, 6, 6], [4, 5, 5, 5, 5, 6], [5, 5, 5, 5, 5, 5])
    assert leaders == [1, 1, 2, 2, 2, 2]
    for replicas in made.values():
        assert len({racks[replica] for replica in replicas}) == 2


@given(
    rack_of=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    partitions=st.integers(1, 40),
    factor=st.integers(1, 12),
    aware=st.booleans(),
    seed=st.integers(),
)
def test_replicas_differ_and_racks_come_first(
    rack_of: list[int], partitions: int, factor: int, aware: bool, seed: int
) -> None:
    racks = {broker: f"r{rack}" if aware else None for broker, rack in enumerate(rack_of)}
    factor = min(factor, len(racks))
    made = assign_replicas(racks, partitions, factor, random.Random(seed))
    assert sorted(made) == list(range(partitions))
    for replicas in made.values():
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(racks)
        if aware:
            used = {racks[replica] for replica in replicas}
            assert len(used) == min(factor, len(set(racks.values())))
    leaders = Counter(replicas[0] for replicas in made.values())
    assert max(leaders.values()) - min(leaders.get(rack, 0) for rack in racks) <= 1


def test_impossible_placements_are_rejected() -> None:
    rng = random.Random(1)
    with pytest.raises(InvalidPartitions, match=r"must be larger than 0\."):
        assign_replicas({1: None}, 0, 1, rng)
    with pytest.raises(InvalidReplicationFactor, match=r"must be larger than 0\."):
        assign_replicas({1: None}, 1, 0, rng)
    with pytest.raises(InvalidReplicationFactor, match=r"3 larger than available brokers: 2\."):
        assign_replicas({1: None, 2: None}, 1, 3, rng)
    with pytest.raises(MixedRacks):
        assign_replicas({1: None, 2: "r"}, 1, 1, rng)
