"""The broker's codec reads the requests of users without permission."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from urteil.broker.wire import messages
from urteil.broker.wire.schema import Message
from urteil.harness.protocol import unauthorized_changes as acts
from urteil.harness.protocol import unauthorized_requests as forbidden


class _Broker:
    """Decodes a request and responds with an error."""

    def __init__(self, request: type[Message], answer: Message) -> None:
        self.request, self.answer = request, answer
        self.request_read: Message | None = None

    def call(self, frame: bytes) -> bytes:
        length, _, version, _, name = struct.unpack_from(">ihhih", frame)
        assert length == len(frame) - 4
        body = frame[14 + name :]
        self.request_read, end = self.request.decode(version, body, 0)
        assert end == len(body)
        return struct.pack(">i", 1) + b"".join(self.answer.encode(version))


_PARTITION = messages.ListOffsetsResponse.ListOffsetsPartitionResponse
_DELETED = messages.DeleteRecordsResponse.DeleteRecordsPartitionResult


@pytest.mark.parametrize(
    ("ask", "request_type", "answer"),
    [
        (lambda at: forbidden.list_offsets(at, "x"), messages.ListOffsetsRequest,
         messages.ListOffsetsResponse(topics=[
             messages.ListOffsetsResponse.ListOffsetsTopicResponse(
                 name="x", partitions=[_PARTITION(error_code=29)])])),
        (lambda at: forbidden.delete_records(at, "x"), messages.DeleteRecordsRequest,
         messages.DeleteRecordsResponse(topics=[
             messages.DeleteRecordsResponse.DeleteRecordsTopicResult(
                 name="x", partitions=[_DELETED(error_code=29)])])),
        (lambda at: forbidden.create_topic(at, "x"), messages.CreateTopicsRequest,
         messages.CreateTopicsResponse(topics=[
             messages.CreateTopicsResponse.CreatableTopicResult(name="x", error_code=29)])),
        (lambda at: forbidden.alter_configs(at, "x"), messages.AlterConfigsRequest,
         messages.AlterConfigsResponse(responses=[
             messages.AlterConfigsResponse.AlterConfigsResourceResponse(error_code=29)])),
        (lambda at: forbidden.describe_configs(at, "x"), messages.DescribeConfigsRequest,
         messages.DescribeConfigsResponse(results=[
             messages.DescribeConfigsResponse.DescribeConfigsResult(error_code=29)])),
        (lambda at: forbidden.init_producer_id(at, "x"), messages.InitProducerIdRequest,
         messages.InitProducerIdResponse(error_code=29)),
        (lambda at: forbidden.heartbeat(at, "x"), messages.HeartbeatRequest,
         messages.HeartbeatResponse(error_code=29)),
        (lambda at: forbidden.fetch_positions(at, "x"), messages.OffsetFetchRequest,
         messages.OffsetFetchResponse(error_code=29)),
        (lambda at: forbidden.describe_group(at, "x"), messages.DescribeGroupsRequest,
         messages.DescribeGroupsResponse(groups=[
             messages.DescribeGroupsResponse.DescribedGroup(error_code=29)])),
        (lambda at: forbidden.delete_group(at, "x"), messages.DeleteGroupsRequest,
         messages.DeleteGroupsResponse(results=[
             messages.DeleteGroupsResponse.DeletableGroupResult(group_id="x", error_code=29)])),
        (forbidden.stop_replicas, messages.StopReplicaRequest,
         messages.StopReplicaResponse(error_code=29)),
        (lambda at: acts.delete_topic(at, "x"), messages.DeleteTopicsRequest,
         messages.DeleteTopicsResponse(responses=[
             messages.DeleteTopicsResponse.DeletableTopicResult(name="x", error_code=29)])),
        (lambda at: acts.create_partitions(at, "x"), messages.CreatePartitionsRequest,
         messages.CreatePartitionsResponse(results=[
             messages.CreatePartitionsResponse.CreatePartitionsTopicResult(
                 name="x", error_code=29)])),
        (lambda at: acts.elect_leader(at, "x"), messages.ElectLeadersRequest,
         messages.ElectLeadersResponse(replica_election_results=[
             messages.ElectLeadersResponse.ReplicaElectionResult(topic="x", partition_result=[
                 messages.ElectLeadersResponse.PartitionResult(error_code=29)])])),
        (lambda at: acts.epoch_end(at, "x"), messages.OffsetForLeaderEpochRequest,
         messages.OffsetForLeaderEpochResponse(topics=[
             messages.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                 topic="x", partitions=[
                     messages.OffsetForLeaderEpochResponse.EpochEndOffset(error_code=29)])])),
        (lambda at: acts.alter_configs(at, "x"), messages.IncrementalAlterConfigsRequest,
         messages.IncrementalAlterConfigsResponse(responses=[
             messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                 error_code=29)])),
        (lambda at: acts.commit(at, "x"), messages.OffsetCommitRequest,
         messages.OffsetCommitResponse(topics=[
             messages.OffsetCommitResponse.OffsetCommitResponseTopic(name="x", partitions=[
                 messages.OffsetCommitResponse.OffsetCommitResponsePartition(
                     error_code=29)])])),
        (lambda at: acts.join(at, "x"), messages.JoinGroupRequest,
         messages.JoinGroupResponse(error_code=29)),
        (lambda at: acts.sync(at, "x"), messages.SyncGroupRequest,
         messages.SyncGroupResponse(error_code=29)),
        (lambda at: acts.leave(at, "x"), messages.LeaveGroupRequest,
         messages.LeaveGroupResponse(error_code=29)),
        (lambda at: acts.delete_positions(at, "x"), messages.OffsetDeleteRequest,
         messages.OffsetDeleteResponse(error_code=29)),
        (lambda at: acts.add_partition(at, "x"), messages.AddPartitionsToTxnRequest,
         messages.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[
             messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                 name="x", results_by_partition=[
                     messages.AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                         partition_error_code=29)])])),
        (lambda at: acts.add_offsets(at, "x"), messages.AddOffsetsToTxnRequest,
         messages.AddOffsetsToTxnResponse(error_code=29)),
        (lambda at: acts.commit_in_transaction(at, "x"), messages.TxnOffsetCommitRequest,
         messages.TxnOffsetCommitResponse(topics=[
             messages.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                 name="x", partitions=[
                     messages.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                         error_code=29)])])),
        (lambda at: acts.end_transaction(at, "x"), messages.EndTxnRequest,
         messages.EndTxnResponse(error_code=29)),
        (lambda at: acts.write_marker(at, "x"), messages.WriteTxnMarkersRequest,
         messages.WriteTxnMarkersResponse(markers=[
             messages.WriteTxnMarkersResponse.WritableTxnMarkerResult(topics=[
                 messages.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                     name="x", partitions=[
                         messages.WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
                             error_code=29)])])])),
        (acts.shut_down, messages.ControlledShutdownRequest,
         messages.ControlledShutdownResponse(error_code=29)),
    ],
)  # fmt: skip
def test_request_is_well_formed_and_its_error_is_read(
    ask: Callable[[object], int], request_type: type[Message], answer: Message
) -> None:
    broker = _Broker(request_type, answer)
    assert ask(broker) == 29
    assert broker.request_read is not None
