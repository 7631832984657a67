"""What a stranger asks of a guarded broker, and the rights that are granted for it.

A question is a request about `topic`, `group` and `txn`, which are there, and about names that
are not. Requests that would change something for later ones name what is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.conformance.groups import beat, commit, join, leave, sync
from tests.conformance.records import batch, produce
from urteil.broker.security.acls.acl_model import Operation, PatternType, Permission, ResourceType
from urteil.broker.wire import messages as m
from urteil.broker.wire.schema import Message

UNKNOWN_ID = UUID(int=77)
TOPIC, GROUP, TXN, CLUSTER = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.CLUSTER,
)


@dataclass(frozen=True, slots=True)
class Names:
    """What questions are about; the topic's id is another on each side."""

    topic: str
    topic_id: UUID
    group: str = "a-group"
    txn: str = "a-txn"


Make = Callable[[Names], Message]
QUESTIONS: dict[str, tuple[Make, range | None]] = {}


def question(text: str, versions: range | None = None) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        QUESTIONS[text] = (make, versions)
        return make

    return register


def _topics(kind: Any, names: Names, **more: Any) -> list[Any]:
    return [kind(name=topic, **more) for topic in (names.topic, "never-there")]


@question("Produce")
def _produce(n: Names) -> Message:
    return produce(n.topic, batch([b"v"]), more=[("never-there", 0, batch([b"v"]))])


@question("Produce in a transaction", range(3, 12))
def _produce_txn(n: Names) -> Message:
    data = batch([b"v"], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    made = produce(n.topic, data)
    return m.ProduceRequest(
        transactional_id=n.txn, acks=-1, timeout_ms=5000, topic_data=made.topic_data
    )


def _fetch(n: Names, replica: int) -> Message:
    asked = m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    state = m.FetchRequest.ReplicaState(replica_id=replica)
    return m.FetchRequest(
        replica_id=replica,
        replica_state=state,
        max_wait_ms=0,
        max_bytes=1 << 20,
        topics=[
            m.FetchRequest.FetchTopic(topic=name, topic_id=topic_id, partitions=[asked])
            for name, topic_id in ((n.topic, n.topic_id), ("never-there", UNKNOWN_ID))
        ],
    )


question("Fetch", range(4, 18))(lambda n: _fetch(n, -1))
question("Fetch as a follower")(lambda n: _fetch(n, 3))


@question("ListOffsets")
def _list_offsets(n: Names) -> Message:
    asked = m.ListOffsetsRequest.ListOffsetsPartition(
        partition_index=0, timestamp=-2, max_num_offsets=1
    )
    kind = m.ListOffsetsRequest.ListOffsetsTopic
    return m.ListOffsetsRequest(replica_id=-1, topics=_topics(kind, n, partitions=[asked]))


def _metadata(names: list[Any] | None, **more: Any) -> Message:
    return m.MetadataRequest(
        topics=names,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
        **more,
    )


_Asked = m.MetadataRequest.MetadataRequestTopic
question("Metadata", range(4, 13))(lambda n: _metadata(_topics(_Asked, n)))
question("Metadata of bad names", range(4, 13))(
    lambda n: _metadata([_Asked(name="a b"), _Asked(name="__consumer_offsets")])
)
question("Metadata of all", range(1, 13))(lambda n: _metadata(None))
question("Metadata by id", range(12, 13))(
    lambda n: _metadata(
        [_Asked(name=None, topic_id=n.topic_id), _Asked(name=None, topic_id=UNKNOWN_ID)]
    )
)
question("DescribeCluster")(
    lambda n: m.DescribeClusterRequest(include_cluster_authorized_operations=True)
)
question("OffsetCommit")(
    lambda n: commit(n.group, [(n.topic, 0, 1), (n.topic, 9, 1), ("never-there", 0, 1)])
)


@question("OffsetFetch of old", range(1))
@question("OffsetFetch", range(1, 10))
def _offset_fetch(n: Names) -> Message:
    kind = m.OffsetFetchRequest.OffsetFetchRequestTopic
    several = m.OffsetFetchRequest.OffsetFetchRequestTopics
    return m.OffsetFetchRequest(
        group_id=n.group,
        topics=_topics(kind, n, partition_indexes=[0]),
        groups=[
            m.OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=name, topics=_topics(several, n, partition_indexes=[0])
            )
            for name in (n.group, "another")
        ],
    )


@question("OffsetFetch of all", range(2, 10))
def _offset_fetch_all(n: Names) -> Message:
    return m.OffsetFetchRequest(
        group_id=n.group,
        topics=None,
        groups=[m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=n.group, topics=None)],
    )


def _find(n: Names, key_type: int, key: str) -> Message:
    return m.FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key, "other"])


question("FindCoordinator of a group")(lambda n: _find(n, 0, n.group))
question("FindCoordinator of a transaction", range(1, 7))(lambda n: _find(n, 1, n.txn))
question("FindCoordinator of a share group", range(4, 7))(lambda n: _find(n, 2, n.group))
question("JoinGroup")(lambda n: join("left", "nobody"))
question("SyncGroup")(lambda n: sync("left", "nobody", 1))
question("Heartbeat")(lambda n: beat("left", "nobody", 1))
question("LeaveGroup")(lambda n: leave("left", "nobody"))
question("DescribeGroups")(
    lambda n: m.DescribeGroupsRequest(
        groups=[n.group, "another"], include_authorized_operations=True
    )
)
question("ListGroups")(lambda n: m.ListGroupsRequest())
question("DeleteGroups")(lambda n: m.DeleteGroupsRequest(groups_names=["left", "another"]))


@question("OffsetDelete")
def _offset_delete(n: Names) -> Message:
    partition = m.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
    kind = m.OffsetDeleteRequest.OffsetDeleteRequestTopic
    return m.OffsetDeleteRequest(group_id=n.group, topics=_topics(kind, n, partitions=[partition]))


def _create(n: Names, *names: str) -> Message:
    return m.CreateTopicsRequest(
        timeout_ms=5000,
        validate_only=True,
        topics=[
            m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in names
        ],
    )


question("CreateTopics", range(1, 8))(lambda n: _create(n, n.topic, "new", "twice", "twice"))


@question("DeleteTopics")
def _delete_topics(n: Names) -> Message:
    """Of what is not there alone, lest the topic be gone for the next question."""
    state = m.DeleteTopicsRequest.DeleteTopicState
    return m.DeleteTopicsRequest(
        topic_names=["never-there", "nor-there"],
        timeout_ms=5000,
        topics=[state(name="never-there"), state(name=None, topic_id=UNKNOWN_ID)],
    )


@question("CreatePartitions")
def _create_partitions(n: Names) -> Message:
    kind = m.CreatePartitionsRequest.CreatePartitionsTopic
    return m.CreatePartitionsRequest(
        timeout_ms=5000,
        validate_only=True,
        topics=[kind(name=topic, count=4) for topic in (n.topic, "never-there", "twice", "twice")],
    )


@question("DeleteRecords")
def _delete_records(n: Names) -> Message:
    partition = m.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=0)
    kind = m.DeleteRecordsRequest.DeleteRecordsTopic
    return m.DeleteRecordsRequest(timeout_ms=5000, topics=_topics(kind, n, partitions=[partition]))


@question("OffsetForLeaderEpoch", range(3, 5))
def _epochs(n: Names) -> Message:
    kind = m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    partition = m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    topics = [kind(topic=name, partitions=[partition]) for name in (n.topic, "never-there")]
    return m.OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)


def _init(transactional_id: str | None) -> Message:
    """A known id must not be distinguishable: its epoch is wrong."""
    return m.InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=1000,
        producer_id=7,
        producer_epoch=-1,
    )


question("InitProducerId", range(3, 6))(lambda n: _init(None))
question("InitProducerId of a transaction", range(3, 6))(lambda n: _init(n.txn))


@question("AddPartitionsToTxn", range(4))
def _add_partitions(n: Names) -> Message:
    kind = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    return m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=n.txn,
        v3_and_below_producer_id=5,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=_topics(kind, n, partitions=[0]),
    )


@question("AddPartitionsToTxn to verify", range(4, 6))
def _verify(n: Names) -> Message:
    kind = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    txn = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=n.txn, producer_id=5, verify_only=True,
        topics=_topics(kind, n, partitions=[0]),
    )  # fmt: skip
    return m.AddPartitionsToTxnRequest(transactions=[txn])


question("AddOffsetsToTxn")(
    lambda n: m.AddOffsetsToTxnRequest(
        transactional_id=n.txn, producer_id=5, producer_epoch=0, group_id=n.group
    )
)
question("EndTxn")(
    lambda n: m.EndTxnRequest(
        transactional_id=n.txn, producer_id=5, producer_epoch=0, committed=True
    )
)


@question("TxnOffsetCommit")
def _txn_commit(n: Names) -> Message:
    partition = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
        partition_index=9, committed_offset=1
    )
    kind = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    return m.TxnOffsetCommitRequest(
        transactional_id=n.txn, group_id=n.group, producer_id=5, producer_epoch=0,
        topics=_topics(kind, n, partitions=[partition]),
    )  # fmt: skip


@question("WriteTxnMarkers")
def _markers(n: Names) -> Message:
    topics = m.WriteTxnMarkersRequest.WritableTxnMarkerTopic
    marker = m.WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=5, producer_epoch=0, transaction_result=False,
        topics=[topics(name="never-there", partition_indexes=[0])],
    )  # fmt: skip
    return m.WriteTxnMarkersRequest(markers=[marker])


_Resource = m.DescribeConfigsRequest.DescribeConfigsResource
question("DescribeConfigs")(
    lambda n: m.DescribeConfigsRequest(
        resources=[
            _Resource(
                resource_type=kind, resource_name=name, configuration_keys=["retention.ms", "x"]
            )
            for kind, name in ((2, n.topic), (2, "never-there"), (4, "1"), (4, ""), (8, "1"))
        ]
    )
)


def _altered(request: Any, resource: Any, config: Any, kinds: Any) -> Message:
    made: Message = request(
        validate_only=True,
        resources=[
            resource(resource_type=kind, resource_name=name, configs=[config])
            for kind, name in kinds
        ],
    )
    return made


question("AlterConfigs")(
    lambda n: _altered(
        m.AlterConfigsRequest,
        m.AlterConfigsRequest.AlterConfigsResource,
        m.AlterConfigsRequest.AlterableConfig(name="retention.ms", value="5000"),
        ((2, n.topic), (2, "never-there"), (4, "9")),
    )
)
question("IncrementalAlterConfigs")(
    lambda n: _altered(
        m.IncrementalAlterConfigsRequest,
        m.IncrementalAlterConfigsRequest.AlterConfigsResource,
        m.IncrementalAlterConfigsRequest.AlterableConfig(
            name="retention.ms", config_operation=0, value="5000"
        ),
        ((2, n.topic), (2, "never-there"), (4, "9"), (8, "1")),
    )
)
question("ElectLeaders")(
    lambda n: m.ElectLeadersRequest(
        timeout_ms=1000,
        topic_partitions=[m.ElectLeadersRequest.TopicPartitions(topic=n.topic, partitions=[0])],
    )
)
question("ElectLeaders of all")(
    lambda n: m.ElectLeadersRequest(timeout_ms=1000, topic_partitions=None)
)


@question("AlterPartitionReassignments")
def _reassign(n: Names) -> Message:
    kind = m.AlterPartitionReassignmentsRequest
    partition = kind.ReassignablePartition(partition_index=0, replicas=None)
    topics = [kind.ReassignableTopic(name=n.topic, partitions=[partition])]
    return kind(timeout_ms=1000, topics=topics)


question("ListPartitionReassignments")(
    lambda n: m.ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None)
)


@question("AlterReplicaLogDirs")
def _move(n: Names) -> Message:
    kind = m.AlterReplicaLogDirsRequest
    topics = [kind.AlterReplicaLogDirTopic(name=n.topic, partitions=[0])]
    return kind(dirs=[kind.AlterReplicaLogDir(path="/nowhere", topics=topics)])


question("DescribeLogDirs of nothing", range(1, 5))(lambda n: m.DescribeLogDirsRequest(topics=[]))


@question("DescribeProducers")
def _producers(n: Names) -> Message:
    kind = m.DescribeProducersRequest.TopicRequest
    topics = [kind(name=topic, partition_indexes=[0]) for topic in ("never-there", "nor-there")]
    return m.DescribeProducersRequest(topics=topics)


question("DescribeTransactions")(
    lambda n: m.DescribeTransactionsRequest(transactional_ids=[n.txn, "another"])
)
question("ListTransactions")(lambda n: m.ListTransactionsRequest())


@question("LeaderAndIsr")
def _leader_and_isr(n: Names) -> Message:
    kind = m.LeaderAndIsrRequest
    state = kind.LeaderAndIsrPartitionState(topic_name=n.topic, partition_index=0)
    topic = kind.LeaderAndIsrTopicState(
        topic_name=n.topic, topic_id=n.topic_id, partition_states=[state]
    )
    return kind(
        controller_id=1, controller_epoch=0, ungrouped_partition_states=[state],
        topic_states=[topic],
    )  # fmt: skip


@question("StopReplica")
def _stop_replica(n: Names) -> Message:
    kind = m.StopReplicaRequest
    states = [kind.StopReplicaPartitionState(partition_index=0)]
    return kind(
        controller_id=1,
        controller_epoch=0,
        ungrouped_partitions=[kind.StopReplicaPartitionV0(topic_name=n.topic, partition_index=0)],
        topics=[kind.StopReplicaTopicV1(name=n.topic, partition_indexes=[0])],
        topic_states=[kind.StopReplicaTopicState(topic_name=n.topic, partition_states=states)],
    )


question("UpdateMetadata")(lambda n: m.UpdateMetadataRequest(controller_id=1, controller_epoch=0))
question("ControlledShutdown")(lambda n: m.ControlledShutdownRequest(broker_id=9, broker_epoch=-1))
question("AlterPartition")(lambda n: m.AlterPartitionRequest(broker_id=9, broker_epoch=-5))
question("AllocateProducerIds")(
    lambda n: m.AllocateProducerIdsRequest(broker_id=9, broker_epoch=-5)
)

question("DescribeClientQuotas")(
    lambda n: m.DescribeClientQuotasRequest(
        components=[
            m.DescribeClientQuotasRequest.ComponentData(
                entity_type="user", match_type=0, match="nobody"
            )
        ]
    )
)


@question("AlterClientQuotas")
def _alter_quotas(n: Names) -> Message:
    kind = m.AlterClientQuotasRequest
    ones = [kind.EntityData(entity_type="user", entity_name="ann")]
    ops = [kind.OpData(key="producer_byte_rate", value=5.0)]
    return kind(validate_only=True, entries=[kind.EntryData(entity=ones, ops=ops)])


ACLS_WANTED = {
    "resource_type_filter": 2, "resource_name_filter": "x", "operation": 1, "permission_type": 1,
    "principal_filter": None, "host_filter": None,
}  # fmt: skip
question("DescribeAcls")(lambda n: m.DescribeAclsRequest(**ACLS_WANTED))
question("DeleteAcls")(
    lambda n: m.DeleteAclsRequest(filters=[m.DeleteAclsRequest.DeleteAclsFilter(**ACLS_WANTED)])
)
question("CreateAcls")(
    lambda n: m.CreateAclsRequest(
        creations=[
            m.CreateAclsRequest.AclCreation(
                resource_type=2, resource_name="", principal="User:a", host="*",
                operation=3, permission_type=3,
            )
        ]
    )
)  # fmt: skip

Right = tuple[ResourceType, str, Operation]
RIGHTS: Mapping[str, list[Any]] = {
    "nothing": [],
    "describe of everything": [
        (TOPIC, "*", Operation.DESCRIBE),
        (GROUP, "*", Operation.DESCRIBE),
        (TXN, "*", Operation.DESCRIBE),
        (CLUSTER, "kafka-cluster", Operation.DESCRIBE),
    ],
    "read and write, by prefix": [
        (TOPIC, "a-to", Operation.READ, PatternType.PREFIXED),
        (TOPIC, "a-to", Operation.WRITE, PatternType.PREFIXED),
        (GROUP, "a-gr", Operation.READ, PatternType.PREFIXED),
        (TXN, "a-t", Operation.WRITE, PatternType.PREFIXED),
    ],
    "create, delete, alter": [
        (TOPIC, "*", Operation.CREATE),
        (TOPIC, "*", Operation.DELETE),
        (TOPIC, "*", Operation.ALTER),
        (TOPIC, "*", Operation.ALTER_CONFIGS),
        (GROUP, "*", Operation.DELETE),
    ],
    "alter of the cluster": [
        (CLUSTER, "kafka-cluster", Operation.ALTER),
        (CLUSTER, "kafka-cluster", Operation.ALTER_CONFIGS),
        (CLUSTER, "kafka-cluster", Operation.CREATE),
        (CLUSTER, "kafka-cluster", Operation.IDEMPOTENT_WRITE),
    ],
    "cluster actions": [(CLUSTER, "kafka-cluster", Operation.CLUSTER_ACTION)],
    "everything": [
        (type, name, Operation.ALL)
        for type, name in ((TOPIC, "*"), (GROUP, "*"), (TXN, "*"), (CLUSTER, "kafka-cluster"))
    ],
    "everything but this topic": [
        (TOPIC, "*", Operation.ALL),
        (TOPIC, "a-topic", Operation.ALL, PatternType.LITERAL, Permission.DENY),
        (GROUP, "*", Operation.ALL),
        (TXN, "*", Operation.ALL),
    ],
}
"""Type, name, operation; then how the name is meant and whether it is a denial."""
