"""The transaction coordinator: from a request to the log, and then to the markers.

Source: `TransactionCoordinator` and `TransactionStateManager` of Kafka 3.9 (KIP-98). The
decision to commit or abort is in the log, on every in-sync replica, before the first marker is sent
and before the client receives its answer. After a failover the next coordinator reads the decision
from the log and sends the markers again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from urteil.broker.base.clock import Clock
from urteil.broker.base.tasks import Tasks
from urteil.broker.config.broker_config import BrokerConfig
from urteil.broker.coordination.periodic import run_periodically
from urteil.broker.coordination.shards import APPEND_ERRORS, Shards
from urteil.broker.log.log_iteration import iter_log_batches
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.replication.replica_manager import ReplicaManager
from urteil.broker.transactions import records
from urteil.broker.transactions.marker_sender import Marker, MarkerSender
from urteil.broker.transactions.producer_ids import ProducerIds
from urteil.broker.transactions.shard import Shard
from urteil.broker.transactions.transaction import (
    NO_EPOCH,
    PREPARED,
    TopicPartition,
    Transaction,
    TxnMetadata,
    TxnState,
)
from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.errors import ErrorCode

log = logging.getLogger("transactions")

TRANSACTIONS_TOPIC = "__transaction_state"
NEW_ID_TIMEOUT_S = 3.0
RETRY_S = 0.1

STATE_ERRORS = APPEND_ERRORS | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The error that a client receives for an error of the append of a state."""


class Initialised(NamedTuple):
    error: ErrorCode
    producer_id: int = -1
    producer_epoch: int = -1


class TransactionCoordinator:
    """Coordinates the transactional ids of every partition of the topic that this broker leads."""

    def __init__(
        self,
        config: BrokerConfig,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        clock: Clock,
        producer_ids: ProducerIds,
        markers: MarkerSender,
    ) -> None:
        self._config = config
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._producer_ids = producer_ids
        self._markers = markers
        self._shards: Shards[Shard] = Shards(
            TRANSACTIONS_TOPIC, metadata, config.transaction_state_log_num_partitions
        )
        self._tasks = Tasks("transactions")
        replicas.on_leadership(self.leadership_changed)

    def start(self) -> None:
        """Begin to abort overdue transactions and to remove expired transactional ids."""
        config = self._config
        overdue_ms = config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        expired_ms = config.transaction_remove_expired_transaction_cleanup_interval_ms
        for period_ms, work, name in (
            (overdue_ms, self._abort_overdue, "the abort of overdue transactions"),
            (expired_ms, self._remove_expired, "the removal of expired transactional ids"),
        ):
            self._tasks.spawn(run_periodically(period_ms, work, log, name))

    def stop(self) -> None:
        """Resign from every transactional id and end all tasks."""
        self._shards.clear()
        self._markers.close()
        self._tasks.cancel()

    # -- shards ---------------------------------------------------------------------------------

    def partition_for(self, transactional_id: str) -> int:
        return self._shards.partition_for(transactional_id)

    def leadership_changed(
        self, topic: str, partition: int, is_leader: bool, leader_epoch: int
    ) -> None:
        """Load a partition's transactions when this broker begins to lead it.

        If the same leader has a new epoch, its markers carry that epoch from now on: another
        coordinator may have sent some in between.
        """
        if topic != TRANSACTIONS_TOPIC:
            return
        if not is_leader:
            self._shards.pop(partition)
        elif (shard := self._shards.get(partition)) is not None:
            shard.leader_epoch = leader_epoch
        else:
            self._tasks.spawn(self._load(self._shards.add(Shard(partition, leader_epoch))))

    def _has_current_metadata(self, shard: Shard) -> bool:
        """Whether the metadata are as new as this broker's leadership.

        LeaderAndIsr arrives before UpdateMetadata: until then a partition that the metadata lack
        may exist.
        """
        known = self._metadata.partition(TRANSACTIONS_TOPIC, shard.partition)
        return known is not None and known.leader_epoch >= shard.leader_epoch

    async def _load(self, shard: Shard) -> None:
        hosted = self._replicas.partition(TRANSACTIONS_TOPIC, shard.partition)
        if hosted is None:
            return
        async for header, batch in iter_log_batches(hosted.log):
            if not self._shards.owns(shard):
                return
            if not header.is_control:
                shard.load(batch)
        shard.is_loaded = True
        for transactional_id, txn in shard.transactions.items():
            if txn.now.state in PREPARED:
                self._begin_completion(shard, transactional_id, txn)

    def find(self, transactional_id: str) -> tuple[Shard | None, ErrorCode]:
        """The loaded shard of a transactional id, or the error that a client receives instead."""
        return self._shards.find(transactional_id)

    def _find_transaction(
        self, transactional_id: str, producer_id: int, producer_epoch: int
    ) -> tuple[Shard | None, Transaction | None, ErrorCode]:
        """The transaction of a producer, or the error."""
        shard, error = self.find(transactional_id)
        if shard is None:
            return None, None, error
        txn = shard.transactions.get(transactional_id)
        if txn is None:
            return shard, None, ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return shard, txn, txn.check(producer_id, producer_epoch)

    # -- requests -------------------------------------------------------------------------------

    async def initialise(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None
    ) -> Initialised:
        """A producer id and epoch for a transactional id; earlier producers of it are fenced.

        `expected` has the id and epoch of the client, if it has any. While a transaction of the
        predecessor is ending, the error is CONCURRENT_TRANSACTIONS, and the client retries.
        """
        if not transactional_id:
            return Initialised(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            return Initialised(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        new_id: int | None = None
        while True:
            shard, error = self.find(transactional_id)
            if shard is None:
                return Initialised(error)
            txn = shard.transactions.get(transactional_id)
            if new_id is not None or not _needs_id(txn, expected):
                break
            try:
                async with asyncio.timeout(NEW_ID_TIMEOUT_S):
                    new_id = await self._producer_ids.next_id()
            except TimeoutError:
                return Initialised(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if txn is None:
            assert new_id is not None
            txn = shard.transactions[transactional_id] = self._first(new_id, timeout_ms)
            new_id = None
        return await self._initialise(shard, transactional_id, txn, timeout_ms, expected, new_id)

    def _first(self, producer_id: int, timeout_ms: int) -> Transaction:
        metadata = TxnMetadata(
            producer_id=producer_id,
            producer_epoch=NO_EPOCH,
            timeout_ms=timeout_ms,
            state=TxnState.EMPTY,
            updated_ms=self._clock.now_ms(),
        )
        return Transaction(metadata)

    async def _initialise(
        self,
        shard: Shard,
        transactional_id: str,
        txn: Transaction,
        timeout_ms: int,
        expected: tuple[int, int] | None,
        new_id: int | None,
    ) -> Initialised:
        if txn.pending is not None:
            return Initialised(ErrorCode.CONCURRENT_TRANSACTIONS)
        if expected is not None and not txn.may_continue(*expected):
            return Initialised(ErrorCode.PRODUCER_FENCED)
        if txn.now.state in PREPARED:
            return Initialised(ErrorCode.CONCURRENT_TRANSACTIONS)
        if txn.now.state is TxnState.ONGOING:
            error = await self._fence(shard, transactional_id, txn)
            failed = error is not ErrorCode.NONE
            return Initialised(error if failed else ErrorCode.CONCURRENT_TRANSACTIONS)
        epoch = None if expected is None else expected[1]
        step = txn.initialise(
            epoch, timeout_ms, self._clock.now_ms(), new_id if txn.needs_new_id(epoch) else None
        )
        if isinstance(step, ErrorCode):
            return Initialised(step)
        error = await self._store(shard, transactional_id, txn, step)
        if error is not ErrorCode.NONE:
            return Initialised(error)
        return Initialised(ErrorCode.NONE, step.producer_id, step.producer_epoch)

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
    ) -> ErrorCode:
        """Add partitions to the producer's transaction; the first ones begin it."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        shard, txn, error = self._find_transaction(transactional_id, producer_id, producer_epoch)
        if shard is None or txn is None or error is not ErrorCode.NONE:
            return error
        step = txn.add(frozenset(partitions), self._clock.now_ms())
        if isinstance(step, ErrorCode):
            return step
        return await self._store(shard, transactional_id, txn, step)

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether partitions are in the producer's transaction, for their leaders (KIP-890)."""
        keys = list(partitions)
        if not transactional_id:
            return dict.fromkeys(keys, ErrorCode.INVALID_REQUEST)
        _, txn, error = self._find_transaction(transactional_id, producer_id, producer_epoch)
        if txn is None or error is not ErrorCode.NONE:
            return dict.fromkeys(keys, error)
        if txn.now.state in PREPARED:
            return dict.fromkeys(keys, ErrorCode.CONCURRENT_TRANSACTIONS)
        known = txn.now.partitions
        return {
            key: ErrorCode.NONE if key in known else ErrorCode.TRANSACTION_ABORTABLE for key in keys
        }

    async def end(
        self, transactional_id: str, producer_id: int, producer_epoch: int, *, commit: bool
    ) -> ErrorCode:
        """Commit or abort; returns when the decision is in the log, before the markers."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        shard, error = self.find(transactional_id)
        if shard is None:
            return error
        txn = shard.transactions.get(transactional_id)
        if txn is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        step = txn.end(
            producer_id,
            producer_epoch,
            commit=commit,
            by_client=True,
            now_ms=self._clock.now_ms(),
        )
        if isinstance(step, ErrorCode):
            return step
        return await self._decide(shard, transactional_id, txn, step)

    def describe(self, transactional_id: str) -> tuple[ErrorCode, TxnMetadata | None]:
        shard, error = self.find(transactional_id)
        if shard is None:
            return error, None
        txn = shard.transactions.get(transactional_id)
        if txn is None or txn.now.state is TxnState.DEAD:
            return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, None
        return ErrorCode.NONE, txn.now

    def transactions(self) -> tuple[ErrorCode, dict[str, TxnMetadata]]:
        """All transactions of this coordinator; COORDINATOR_LOAD_IN_PROGRESS during loading."""
        if not self._shards.are_loaded:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, {}
        return ErrorCode.NONE, {
            transactional_id: txn.now
            for shard in self._shards
            for transactional_id, txn in shard.transactions.items()
            if txn.now.state is not TxnState.DEAD
        }

    # -- ending ---------------------------------------------------------------------------------

    async def _fence(self, shard: Shard, transactional_id: str, txn: Transaction) -> ErrorCode:
        """Abort an open transaction in a new epoch, which fences its producer."""
        fence = txn.fence()
        txn.begin(fence)
        step = txn.end(
            fence.producer_id,
            fence.producer_epoch,
            commit=False,
            by_client=False,
            now_ms=self._clock.now_ms(),
        )
        assert isinstance(step, TxnMetadata)
        error = await self._decide(shard, transactional_id, txn, step)
        txn.fence_failed = error is not ErrorCode.NONE
        return error

    async def _decide(
        self, shard: Shard, transactional_id: str, txn: Transaction, step: TxnMetadata
    ) -> ErrorCode:
        error = await self._store(shard, transactional_id, txn, step)
        if error is ErrorCode.NONE:
            self._begin_completion(shard, transactional_id, txn)
        return error

    def _begin_completion(self, shard: Shard, transactional_id: str, txn: Transaction) -> None:
        prepared = txn.now
        step = txn.complete(self._clock.now_ms())
        txn.begin(step)
        self._tasks.spawn(self._complete(shard, transactional_id, txn, prepared, step))

    async def _complete(
        self,
        shard: Shard,
        transactional_id: str,
        txn: Transaction,
        prepared: TxnMetadata,
        step: TxnMetadata,
    ) -> None:
        while self._shards.owns(shard) and not self._has_current_metadata(shard):
            await self._markers.wait_for_metadata()
        marker = Marker(
            producer_id=prepared.producer_id,
            producer_epoch=prepared.producer_epoch,
            commit=prepared.state is TxnState.PREPARE_COMMIT,
            coordinator_epoch=shard.leader_epoch,
        )
        if not await self._markers.write(
            marker, prepared.partitions, lambda: self._shards.owns(shard), txn.record_remaining
        ):
            return
        while self._shards.owns(shard):
            error = await self._append(shard, transactional_id, step)
            if error is ErrorCode.NONE:
                txn.replay(step)
                return
            log.warning("the end of %s was not stored: %s", transactional_id, error.name)
            if error is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                return
            await asyncio.sleep(RETRY_S)

    # -- storing --------------------------------------------------------------------------------

    async def _store(
        self, shard: Shard, transactional_id: str, txn: Transaction, step: TxnMetadata
    ) -> ErrorCode:
        """Append a step and then apply it; after an error the state is unchanged."""
        txn.begin(step)
        error = await self._append(shard, transactional_id, step)
        if error is ErrorCode.NONE:
            txn.replay(step)
        else:
            txn.drop()
        return error

    async def _append(
        self, shard: Shard, transactional_id: str, step: TxnMetadata | None
    ) -> ErrorCode:
        """Append one record with acks=all, or a tombstone if there is no step."""
        if not self._shards.owns(shard):
            return ErrorCode.NOT_COORDINATOR
        key = records.encode_key(transactional_id)
        value = None if step is None else records.encode_value(step)
        batch = build_batch([(key, value, (), self._clock.now_ms())])
        where = (TRANSACTIONS_TOPIC, shard.partition)
        timeout_ms = self._config.request_timeout_ms if step is None else step.timeout_ms
        answers = await self._replicas.append(
            timeout_ms, -1, {where: memoryview(batch)}, internal=True
        )
        error = answers[where].error
        if not self._shards.owns(shard):
            return ErrorCode.NOT_COORDINATOR
        return STATE_ERRORS.get(error, error)

    # -- timeouts and expiration ----------------------------------------------------------------

    def _all_transactions(self) -> list[tuple[Shard, str, Transaction]]:
        return [
            (shard, transactional_id, txn)
            for shard in self._shards
            if shard.is_loaded
            for transactional_id, txn in shard.transactions.items()
        ]

    async def _abort_overdue(self) -> None:
        """Abort transactions that exceed their timeout, and fence their producers (KIP-98)."""
        now_ms = self._clock.now_ms()
        for shard, transactional_id, txn in self._all_transactions():
            if txn.is_overdue(now_ms):
                log.info("the transaction of %s has timed out", transactional_id)
                self._tasks.spawn(self._abort(shard, transactional_id, txn))

    async def _abort(self, shard: Shard, transactional_id: str, txn: Transaction) -> None:
        if not txn.is_overdue(self._clock.now_ms()):
            return  # its producer is ending it
        error = await self._fence(shard, transactional_id, txn)
        if error is not ErrorCode.NONE:
            log.warning("%s could not be aborted: %s", transactional_id, error.name)

    async def _remove_expired(self) -> None:
        """Remove transactional ids unused for `transactional.id.expiration.ms`."""
        now_ms, after_ms = self._clock.now_ms(), self._config.transactional_id_expiration_ms
        for shard, transactional_id, txn in self._all_transactions():
            if not txn.is_expired(now_ms, after_ms):
                continue
            txn.begin(replace(txn.now, state=TxnState.DEAD))
            if await self._append(shard, transactional_id, None) is ErrorCode.NONE:
                shard.transactions.pop(transactional_id, None)
            txn.drop()


def _needs_id(txn: Transaction | None, expected: tuple[int, int] | None) -> bool:
    if txn is None:
        return True
    return txn.needs_new_id(None if expected is None else expected[1])
