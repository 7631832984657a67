"""All messages of the codec under Kafka's names, and by API key in REQUESTS and RESPONSES.

Import the registries from here: they are full only once every message module was loaded.
"""

from urteil.broker.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from urteil.broker.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from urteil.broker.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from urteil.broker.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from urteil.broker.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from urteil.broker.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from urteil.broker.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from urteil.broker.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from urteil.broker.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from urteil.broker.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from urteil.broker.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from urteil.broker.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from urteil.broker.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from urteil.broker.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from urteil.broker.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from urteil.broker.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from urteil.broker.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from urteil.broker.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from urteil.broker.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from urteil.broker.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from urteil.broker.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from urteil.broker.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from urteil.broker.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from urteil.broker.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from urteil.broker.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from urteil.broker.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from urteil.broker.wire.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from urteil.broker.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from urteil.broker.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from urteil.broker.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from urteil.broker.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from urteil.broker.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from urteil.broker.wire.messages.end_txn import (
    EndTxnRequest,
    EndTxnResponse,
)
from urteil.broker.wire.messages.envelope import (
    EnvelopeRequest,
    EnvelopeResponse,
)
from urteil.broker.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from urteil.broker.wire.messages.fetch import FetchRequest, FetchResponse
from urteil.broker.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from urteil.broker.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from urteil.broker.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from urteil.broker.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from urteil.broker.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from urteil.broker.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from urteil.broker.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from urteil.broker.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from urteil.broker.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from urteil.broker.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from urteil.broker.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from urteil.broker.wire.messages.metadata import MetadataRequest, MetadataResponse
from urteil.broker.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from urteil.broker.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from urteil.broker.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from urteil.broker.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from urteil.broker.wire.messages.produce import ProduceRequest, ProduceResponse
from urteil.broker.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from urteil.broker.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from urteil.broker.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from urteil.broker.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from urteil.broker.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from urteil.broker.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from urteil.broker.wire.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from urteil.broker.wire.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from urteil.broker.wire.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from urteil.broker.wire.schema import REQUESTS, RESPONSES

__all__ = [
    "REQUESTS",
    "RESPONSES",
    "AddOffsetsToTxnRequest",
    "AddOffsetsToTxnResponse",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnResponse",
    "AllocateProducerIdsRequest",
    "AllocateProducerIdsResponse",
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "AlterConfigsRequest",
    "AlterConfigsResponse",
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "AlterReplicaLogDirsRequest",
    "AlterReplicaLogDirsResponse",
    "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsResponse",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "ControlledShutdownRequest",
    "ControlledShutdownResponse",
    "CreateAclsRequest",
    "CreateAclsResponse",
    "CreateDelegationTokenRequest",
    "CreateDelegationTokenResponse",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "DeleteAclsRequest",
    "DeleteAclsResponse",
    "DeleteGroupsRequest",
    "DeleteGroupsResponse",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
    "DescribeAclsRequest",
    "DescribeAclsResponse",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
    "DescribeClusterRequest",
    "DescribeClusterResponse",
    "DescribeConfigsRequest",
    "DescribeConfigsResponse",
    "DescribeDelegationTokenRequest",
    "DescribeDelegationTokenResponse",
    "DescribeGroupsRequest",
    "DescribeGroupsResponse",
    "DescribeLogDirsRequest",
    "DescribeLogDirsResponse",
    "DescribeProducersRequest",
    "DescribeProducersResponse",
    "DescribeTransactionsRequest",
    "DescribeTransactionsResponse",
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse",
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "EndTxnRequest",
    "EndTxnResponse",
    "EnvelopeRequest",
    "EnvelopeResponse",
    "ExpireDelegationTokenRequest",
    "ExpireDelegationTokenResponse",
    "FetchRequest",
    "FetchResponse",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "LeaderAndIsrRequest",
    "LeaderAndIsrResponse",
    "LeaveGroupRequest",
    "LeaveGroupResponse",
    "ListGroupsRequest",
    "ListGroupsResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "ListTransactionsRequest",
    "ListTransactionsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetDeleteRequest",
    "OffsetDeleteResponse",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "ProduceRequest",
    "ProduceResponse",
    "RenewDelegationTokenRequest",
    "RenewDelegationTokenResponse",
    "SaslAuthenticateRequest",
    "SaslAuthenticateResponse",
    "SaslHandshakeRequest",
    "SaslHandshakeResponse",
    "StopReplicaRequest",
    "StopReplicaResponse",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
    "UpdateFeaturesRequest",
    "UpdateFeaturesResponse",
    "UpdateMetadataRequest",
    "UpdateMetadataResponse",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
]
