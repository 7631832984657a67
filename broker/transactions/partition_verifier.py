"""Verification by a leader that its partition is part of a transaction (KIP-890, part 1).

Source: `AddPartitionsToTxnManager` and `ReplicaManager.handleProduceAppend` of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from urteil.broker.base.clock import Clock
from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.log.log_results import AppendResult
from urteil.broker.log.transaction_verification import TRUSTED, Guard
from urteil.broker.net.channels import Channels
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.replication.partition import refusal
from urteil.broker.replication.replica_manager import ReplicaManager, TopicPartition
from urteil.broker.transactions.coordinator import TRANSACTIONS_TOPIC, TransactionCoordinator
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

VERSION = 4
PURPOSE = "txn-verification"
ENABLED = "transaction.partition.verification.enable"
RETRIABLE = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Errors reported as NOT_ENOUGH_REPLICAS, after which a producer retries."""
NOT_ADDED = (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE)

Errors = dict[TopicPartition, ErrorCode]


class Claim(NamedTuple):
    """The producer that appends to a partition, and its first sequence."""

    producer_id: int
    producer_epoch: int
    sequence: int


class Verified(NamedTuple):
    """The guards of partitions that may be appended to, and the errors of the others."""

    guards: dict[TopicPartition, Guard]
    errors: Errors


class PartitionVerifier:
    """Verifies with the transaction coordinator before the first batch of a transaction."""

    def __init__(
        self,
        config: BrokerConfig,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        channels: Channels,
        coordinator: TransactionCoordinator,
        clock: Clock,
    ) -> None:
        self._config = config
        self._replicas = replicas
        self._metadata = metadata
        self._channels = channels
        self._coordinator = coordinator
        self._clock = clock

    async def verify(
        self,
        transactional_id: str,
        claims: Mapping[TopicPartition, Claim],
        *,
        knows_abortable: bool,
    ) -> Verified:
        """Verify the claims of one producer; a partition with its open transaction passes at once.

        `knows_abortable`: whether the client's request is new enough for TRANSACTION_ABORTABLE.
        """
        guards, unverified = self._start(claims)
        if not unverified:
            return Verified(guards, {})
        claim = next(iter(unverified.values()))
        errors = await self._verify_at_coordinator(
            transactional_id, claim.producer_id, claim.producer_epoch, list(unverified)
        )
        client_errors = {
            key: _client_error(error, knows_abortable=knows_abortable)
            for key, error in errors.items()
            if error is not ErrorCode.NONE
        }
        return Verified(
            {key: guard for key, guard in guards.items() if key not in client_errors}, client_errors
        )

    def _start(
        self, claims: Mapping[TopicPartition, Claim]
    ) -> tuple[dict[TopicPartition, Guard], dict[TopicPartition, Claim]]:
        guards, unverified = {}, {}
        is_on = self._config.properties.value(ENABLED)
        for key, claim in claims.items():
            partition = self._replicas.partition(*key)
            if not is_on or partition is None or not partition.is_leader:
                guards[key] = TRUSTED  # the append reports that this broker is not the leader
            elif partition.log.producers.is_open(claim.producer_id):
                guards[key] = TRUSTED
            else:
                guards[key] = partition.log.verifications.start(*claim, self._clock.now_ms())
                unverified[key] = claim
        return guards, unverified

    async def _verify_at_coordinator(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[TopicPartition],
    ) -> Errors:
        where = self._coordinator.partition_for(transactional_id)
        state = self._metadata.partition(TRANSACTIONS_TOPIC, where)
        leader = -1 if state is None else state.leader
        if leader == self._config.broker_id:
            return self._coordinator.verify(
                transactional_id, producer_id, producer_epoch, partitions
            )
        endpoint = self._metadata.endpoint(leader, self._config.inter_broker_listener)
        if endpoint is None:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        request = _request(transactional_id, producer_id, producer_epoch, partitions)
        try:
            response: AddPartitionsToTxnResponse = await self._channels.send(
                endpoint, request, VERSION, self._config.request_timeout_ms, purpose=PURPOSE
            )
        except (ConnectionError, TimeoutError):
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        return _errors(response, partitions)


def _request(
    transactional_id: str, producer_id: int, producer_epoch: int, partitions: list[TopicPartition]
) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                verify_only=True,
                topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                        name=topic,
                        partitions=[partition for name, partition in partitions if name == topic],
                    )
                    for topic in dict.fromkeys(name for name, _ in partitions)
                ],
            )
        ]
    )


def _errors(response: AddPartitionsToTxnResponse, partitions: list[TopicPartition]) -> Errors:
    if response.error_code != ErrorCode.NONE:
        error = ErrorCode(response.error_code)
        forbidden = error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return dict.fromkeys(partitions, ErrorCode.INVALID_TXN_STATE if forbidden else error)
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
        for result in response.results_by_transaction
        for topic in result.topic_results
        for partition in topic.results_by_partition
    }


def _client_error(error: ErrorCode, *, knows_abortable: bool) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error


def unverified_result(error: ErrorCode) -> AppendResult:
    """The result of a batch that the coordinator did not confirm."""
    if error in NOT_ADDED:
        return refusal(error, "Partition was not added to the transaction")
    if error in RETRIABLE:
        return refusal(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. Underlying error: "
            f"{error.name}",
        )
    return refusal(error)
