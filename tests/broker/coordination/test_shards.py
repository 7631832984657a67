"""Shards of a coordinator: the owner of a key, the errors before loading, replaced shards."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from urteil.broker.coordination.shards import Shards
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.wire.errors import ErrorCode

TOPIC = "__consumer_offsets"


@dataclass
class OneShard:
    partition: int
    is_loaded: bool = True


@pytest.fixture
def metadata() -> MetadataCache:
    return MetadataCache()


def test_key_of_a_partition_led_elsewhere_is_not_coordinated(metadata: MetadataCache) -> None:
    shards: Shards[OneShard] = Shards(TOPIC, metadata, 1)
    assert shards.find("g") == (None, ErrorCode.NOT_COORDINATOR)


def test_key_is_loading_until_the_topic_is_in_the_metadata(metadata: MetadataCache) -> None:
    shards: Shards[OneShard] = Shards(TOPIC, metadata, 1)
    shards.add(OneShard(0))
    assert shards.find("g") == (None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def test_replaced_shard_is_not_owned(metadata: MetadataCache) -> None:
    shards: Shards[OneShard] = Shards(TOPIC, metadata, 1)
    first = shards.add(OneShard(0))
    assert shards.owns(first)
    assert shards.pop(0) is first
    second = shards.add(OneShard(0, is_loaded=False))
    assert not shards.owns(first)
    assert shards.owns(second)
    assert not shards.are_loaded
