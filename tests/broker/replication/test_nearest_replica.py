"""The replica in the consumer's rack (KIP-392)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.replication.plain import Plain, state
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.replication.nearest_replica import LEADER, NearestReplica
from urteil.broker.replication.partition_read import FetchTerms, read_partition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest, UpdateMetadataRequest

RACKS = {1: "a", 2: "b", 3: "b"}


@pytest.fixture
def metadata() -> MetadataCache:
    cache = MetadataCache()
    point = UpdateMetadataRequest.UpdateMetadataEndpoint(host="h", port=1, listener="OUT")
    cache.update(
        UpdateMetadataRequest(
            live_brokers=[
                UpdateMetadataRequest.UpdateMetadataBroker(id=broker, rack=rack, endpoints=[point])
                for broker, rack in RACKS.items()
            ]
        )
    )
    return cache


@pytest.fixture
def plain(tmp_path: Path) -> Plain:
    made = Plain(tmp_path / "t-0")
    made.partition.become_leader(state(1, 3), 0.0)
    for _ in range(4):
        made.append(1)
    made.partition.record_follower_fetch(2, 2, 0, 0.0)
    made.partition.record_follower_fetch(3, 3, 1, 0.0)
    return made


def test_replica_of_the_rack_with_the_offset_is_selected(
    plain: Plain, metadata: MetadataCache
) -> None:
    near = NearestReplica(metadata, "b", "OUT")
    assert [near.select(plain.partition, offset) for offset in range(5)] == [2, 3, 3, 3, LEADER]


@pytest.mark.parametrize(
    ("rack", "listener"), [("a", "OUT"), ("c", "OUT"), ("", "OUT"), ("b", "IN")]
)
def test_leader_serves_consumers_without_a_near_replica(
    plain: Plain, metadata: MetadataCache, rack: str, listener: str
) -> None:
    assert NearestReplica(metadata, rack, listener).select(plain.partition, 1) == LEADER


def test_only_members_of_the_isr_are_selected(plain: Plain, metadata: MetadataCache) -> None:
    plain.partition.become_leader(state(1, 3, (1, 2), partition_epoch=9), 0.0)
    near = NearestReplica(metadata, "b", "OUT")
    assert near.select(plain.partition, 2) == 2
    assert near.select(plain.partition, 3) == LEADER


def test_redirected_consumer_gets_no_records(plain: Plain, metadata: MetadataCache) -> None:
    terms = FetchTerms(
        replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, any_replica=True,
        nearest=NearestReplica(metadata, "b", "OUT"),
    )  # fmt: skip

    def read(epoch: int) -> tuple[ErrorCode, int, int]:
        asked = FetchRequest.FetchPartition(
            fetch_offset=1, current_leader_epoch=epoch, partition_max_bytes=1 << 20
        )
        result = read_partition(plain.partition, asked, terms, 1 << 20, 0.0, min_one=True)
        return result.error, result.preferred_replica, result.size

    assert read(3) == (ErrorCode.NONE, 3, 0)
    assert read(2) == (ErrorCode.FENCED_LEADER_EPOCH, -1, 0)
