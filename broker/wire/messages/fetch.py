"""Fetch: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Records, Struct, field, request, response, struct


@request(ApiKey.FETCH, "0-17", flexible="12+")
class FetchRequest(Message):
    """Records of partitions from given offsets, for consumers and followers."""

    @struct
    class ReplicaState(Struct):
        replica_id: int = field("int32", "15+", default=-1)
        replica_epoch: int = field("int64", "15+", default=-1)

    @struct
    class FetchPartition(Struct):
        partition: int = field("int32", "0+")
        current_leader_epoch: int = field("int32", "9+", default=-1)
        fetch_offset: int = field("int64", "0+")
        last_fetched_epoch: int = field("int32", "12+", default=-1)
        log_start_offset: int = field("int64", "5+", default=-1)
        partition_max_bytes: int = field("int32", "0+")
        replica_directory_id: UUID = field("uuid", "17+", tag=0, tagged="17+")

    @struct
    class FetchTopic(Struct):
        topic: str = field("string", "0-12")
        topic_id: UUID = field("uuid", "13+")
        partitions: Sequence[FetchRequest.FetchPartition] = field("[]FetchPartition", "0+")

    @struct
    class ForgottenTopic(Struct):
        topic: str = field("string", "7-12")
        topic_id: UUID = field("uuid", "13+")
        partitions: Sequence[int] = field("[]int32", "7+")

    cluster_id: str | None = field(
        "string", "12+", nullable="12+", default=None, tag=0, tagged="12+"
    )
    replica_id: int = field("int32", "0-14", default=-1)
    replica_state: FetchRequest.ReplicaState = field("ReplicaState", "15+", tag=1, tagged="15+")
    max_wait_ms: int = field("int32", "0+")
    min_bytes: int = field("int32", "0+")
    max_bytes: int = field("int32", "3+", default=2147483647)
    isolation_level: int = field("int8", "4+")
    session_id: int = field("int32", "7+")
    session_epoch: int = field("int32", "7+", default=-1)
    topics: Sequence[FetchRequest.FetchTopic] = field("[]FetchTopic", "0+")
    forgotten_topics_data: Sequence[FetchRequest.ForgottenTopic] = field("[]ForgottenTopic", "7+")
    rack_id: str = field("string", "11+")


@response(ApiKey.FETCH, "0-17", flexible="12+")
class FetchResponse(Message):
    """Records and high watermarks; a null means no records."""

    @struct
    class EpochEndOffset(Struct):
        epoch: int = field("int32", "12+", default=-1)
        end_offset: int = field("int64", "12+", default=-1)

    @struct
    class LeaderIdAndEpoch(Struct):
        leader_id: int = field("int32", "12+", default=-1)
        leader_epoch: int = field("int32", "12+", default=-1)

    @struct
    class SnapshotId(Struct):
        end_offset: int = field("int64", "0+", default=-1)
        epoch: int = field("int32", "0+", default=-1)

    @struct
    class AbortedTransaction(Struct):
        producer_id: int = field("int64", "4+")
        first_offset: int = field("int64", "4+")

    @struct
    class PartitionData(Struct):
        partition_index: int = field("int32", "0+")
        error_code: int = field("int16", "0+")
        high_watermark: int = field("int64", "0+")
        last_stable_offset: int = field("int64", "4+", default=-1)
        log_start_offset: int = field("int64", "5+", default=-1)
        diverging_epoch: FetchResponse.EpochEndOffset = field(
            "EpochEndOffset", "12+", tag=0, tagged="12+"
        )
        current_leader: FetchResponse.LeaderIdAndEpoch = field(
            "LeaderIdAndEpoch", "12+", tag=1, tagged="12+"
        )
        snapshot_id: FetchResponse.SnapshotId = field("SnapshotId", "12+", tag=2, tagged="12+")
        aborted_transactions: Sequence[FetchResponse.AbortedTransaction] | None = field(
            "[]AbortedTransaction", "4+", nullable="4+"
        )
        preferred_read_replica: int = field("int32", "11+", default=-1)
        records: Records | None = field("records", "0+", nullable="0+")

    @struct
    class FetchableTopicResponse(Struct):
        topic: str = field("string", "0-12")
        topic_id: UUID = field("uuid", "13+")
        partitions: Sequence[FetchResponse.PartitionData] = field("[]PartitionData", "0+")

    @struct
    class NodeEndpoint(Struct):
        node_id: int = field("int32", "16+")
        host: str = field("string", "16+")
        port: int = field("int32", "16+")
        rack: str | None = field("string", "16+", nullable="16+", default=None)

    throttle_time_ms: int = field("int32", "1+")
    error_code: int = field("int16", "7+")
    session_id: int = field("int32", "7+")
    responses: Sequence[FetchResponse.FetchableTopicResponse] = field(
        "[]FetchableTopicResponse", "0+"
    )
    node_endpoints: Sequence[FetchResponse.NodeEndpoint] = field(
        "[]NodeEndpoint", "16+", tag=0, tagged="16+"
    )
