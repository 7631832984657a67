"""All hosted partitions of this broker: lookup, appends (Kafka's `ReplicaManager`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from urteil.broker.base.offload import Offload, run_steps, yield_items
from urteil.broker.base.purgatory import Purgatory
from urteil.broker.replication.acknowledgement import Acknowledgement
from urteil.broker.replication.directory_moves import DirectoryMoves
from urteil.broker.replication.fetch_reader import FetchReader
from urteil.broker.replication.fetch_target import FetchTarget
from urteil.broker.replication.fetchers import Fetchers
from urteil.broker.replication.isr_proposals import AskController, IsrProposals
from urteil.broker.replication.partition import WRITTEN_AT_ONCE_BYTES, Partition, refusal
from urteil.broker.replication.replication_throttle import Throttle
from urteil.broker.replication.traffic import Traffic
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FetchRequest
from urteil.broker.wire.primitives import ZERO_UUID

if TYPE_CHECKING:
    from urteil.broker.base.clock import Clock
    from urteil.broker.config.broker_config import BrokerConfig
    from urteil.broker.log.log_manager import LogManager
    from urteil.broker.log.partition_log import AppendResult
    from urteil.broker.log.transaction_verification import Guard
    from urteil.broker.net.channels import Channels
    from urteil.broker.replication.metadata_cache import MetadataCache

log = logging.getLogger("replicas")

TopicPartition = tuple[str, int]
# (topic, partition, is_leader, leader_epoch); called on the loop after the change is in effect
LeadershipCallback = Callable[[str, int, bool, int], None]

ACKS_ALL = -1
VALID_ACKS = (-1, 0, 1)


class ReplicaManager:
    """Leader and follower state of every hosted partition.

    `topic_overrides(topic)` returns the topic's settings for a new log. `offline` are the
    partitions that cannot be hosted until the next start because their log directory is offline.
    """

    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        logs: LogManager,
        metadata: MetadataCache,
        channels: Channels,
        broker_epoch: Callable[[], int],
        ask_controller: AskController,
        topic_overrides: Callable[[str], Mapping[str, str]],
        offload: Offload,
    ) -> None:
        self.broker_id = config.broker_id
        self.offload = offload
        self.controller_epoch = 0
        self.partitions: dict[TopicPartition, Partition] = {}
        self.offline: dict[TopicPartition, None] = {}
        self.traffic = Traffic()
        self.purgatories = {
            "DeleteRecords": Purgatory(),
            "Fetch": Purgatory(),
            "Produce": Purgatory(),
        }
        self._config = config
        self._clock = clock
        self._logs = logs
        self._metadata = metadata
        self._topic_overrides = topic_overrides
        self._callbacks: list[LeadershipCallback] = []
        self._topic_names: dict[UUID, str] = {}
        self.proposals = IsrProposals(
            self.broker_id, broker_epoch, ask_controller, clock.monotonic_ms
        )
        self.fetchers = Fetchers(config, clock, channels, broker_epoch)
        self.moves = DirectoryMoves(
            logs, self.find_partition, clock, config.properties, config.replica_fetch_max_bytes
        )
        self.fetch_reader = FetchReader(
            self.broker_id,
            Throttle(config.properties, "leader", clock.monotonic_ms),
            self.purgatories["Fetch"],
            clock.monotonic_ms,
        )

    # -- hosting --------------------------------------------------------------------------------

    def on_leadership(self, callback: LeadershipCallback) -> None:
        """Register a callback for every change of leadership; a deletion calls it with False."""
        self._callbacks.append(callback)

    def notify_leadership(self, partition: Partition) -> None:
        for callback in self._callbacks:
            callback(
                partition.topic, partition.partition, partition.is_leader, partition.leader_epoch
            )

    def partition(self, topic: str, partition: int) -> Partition | None:
        """The hosted partition, or None."""
        return self.partitions.get((topic, partition))

    def find_partition(self, topic: str, partition: int) -> tuple[Partition | None, ErrorCode]:
        """The hosted partition, or an error: KAFKA_STORAGE_ERROR if its directory is offline,
        NOT_LEADER_OR_FOLLOWER if other brokers host it, else UNKNOWN_TOPIC_OR_PARTITION."""
        hosted = self.partitions.get((topic, partition))
        if hosted is not None:
            return hosted, ErrorCode.NONE
        return None, self._absence_error((topic, partition))

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of a topic hosted here or known from the controller."""
        return self._topic_names.get(topic_id) or self._metadata.topic_names.get(topic_id)

    def host(self, topic: str, partition: int, topic_id: UUID, *, is_new: bool = True) -> Partition:
        """Host the partition: open or create its log, with the checkpointed high watermark.

        Raises OSError, also for a log that is not new and may lie in an offline directory.
        """
        hosted = self.partitions.get((topic, partition))
        if hosted is None:
            plog = self._logs.get_or_create(
                topic, partition, topic_id, self._topic_overrides(topic), is_new=is_new
            )
            checkpoint = self._logs.high_watermark_checkpoint(topic, partition)
            plog.update_high_watermark(min(checkpoint, plog.log_end_offset))
            hosted = self.partitions[topic, partition] = Partition(
                topic,
                partition,
                plog,
                self.broker_id,
                self._config.replica_lag_time_max_ms,
                self.proposals.propose,
                lambda broker_id: broker_id in self._metadata.brokers,
            )
            self.moves.resume(hosted)
        if topic_id != ZERO_UUID:
            self._topic_names[topic_id] = topic
        return hosted

    def drop(self, topic: str, partition: int, *, delete: bool) -> None:
        """Stop hosting the partition; with `delete`, delete its log. Raises OSError."""
        hosted = self.partitions.get((topic, partition))
        if hosted is not None:
            self._logs.keep_high_watermark(topic, partition, hosted.log.high_watermark)
            self._stop_hosting(hosted, self._absence_error((topic, partition)))
        if delete:
            self._logs.delete(topic, partition)

    def _stop_hosting(self, partition: Partition, error: ErrorCode) -> None:
        topic, key = partition.topic, (partition.topic, partition.partition)
        self.fetchers.remove([key])
        self.moves.cancel(partition)
        del self.partitions[key]
        partition.retire(error)
        self.notify_leadership(partition)
        if all(hosted.topic != topic for hosted in self.partitions.values()):
            self._topic_names.pop(partition.topic_id, None)
            self.traffic.forget(topic)

    def mark_offline(self, topic: str, partition: int) -> None:
        """Mark a partition whose log directory is offline: it answers KAFKA_STORAGE_ERROR."""
        self.offline[topic, partition] = None
        hosted = self.partitions.get((topic, partition))
        if hosted is not None:
            self._stop_hosting(hosted, ErrorCode.KAFKA_STORAGE_ERROR)

    def drop_directory(self, path: Path) -> list[TopicPartition]:
        """Stop hosting the partitions of a failed directory, before its logs close; return them."""
        lost = [
            key for key, hosted in self.partitions.items() if hosted.log.directory.parent == path
        ]
        for key in lost:
            self.mark_offline(*key)
        self.moves.drop_directory(path)
        self.fetchers.close_idle()
        return lost

    # -- produce --------------------------------------------------------------------------------

    async def append(
        self,
        timeout_ms: int,
        acks: int,
        entries: Mapping[TopicPartition, memoryview],
        *,
        internal: bool = False,
        guards: Mapping[TopicPartition, Guard] | None = None,
    ) -> dict[TopicPartition, AppendResult]:
        """Append as leader; with acks=-1 wait until the high watermark passes, or for the timeout.

        After REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND or NOT_LEADER_OR_FOLLOWER after a
        loss of leadership the records were written, and their fate is unknown.
        The first batch of a transaction needs a guard (`broker.log.transaction_verification`).
        """
        if acks not in VALID_ACKS:
            return dict.fromkeys(entries, refusal(ErrorCode.INVALID_REQUIRED_ACKS))
        wall_ms = self._clock.now_ms()
        results: dict[TopicPartition, AppendResult] = {}
        waiting: dict[TopicPartition, Partition] = {}
        written = 0
        async for key, data in yield_items(entries.items()):
            written += len(data)
            if written > WRITTEN_AT_ONCE_BYTES:
                written = 0
                await asyncio.sleep(0)  # other requests run here
            partition = self.partitions.get(key)
            if partition is None:
                results[key] = refusal(self._absence_error(key))
                continue
            result = partition.append_error(acks)
            if result is None:
                steps = partition.log.validate_append(data, wall_ms, from_client=not internal)
                # the broker's own appends are small and stay in call order
                admitted = run_steps(steps) if internal else await self.offload.finish(steps)
                result = await partition.append_in_turn(
                    admitted,
                    acks,
                    self._clock,
                    from_client=not internal,
                    guard=None if guards is None else guards.get(key),
                )
            results[key] = result
            if result.error is ErrorCode.NONE and result.base_offset >= 0:
                records = result.last_offset - result.base_offset + 1
                self.traffic.count_append(partition.topic, len(data), records)
                if acks == ACKS_ALL:
                    waiting[key] = partition
        if waiting:
            produces = self.purgatories["Produce"]
            await Acknowledgement(results, waiting, produces).wait(timeout_ms)
        return results

    def _absence_error(self, key: TopicPartition) -> ErrorCode:
        if key in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._metadata.partition(*key) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # -- fetch ----------------------------------------------------------------------------------

    def fetch_target(self, topic: str, request: FetchRequest.FetchPartition) -> FetchTarget:
        """The target of a fetched partition: the hosted partition, or an error."""
        hosted, error = self.find_partition(topic, request.partition)
        return FetchTarget(topic, hosted, request, error)

    # -- periodic work --------------------------------------------------------------------------

    def shrink_isrs(self) -> None:
        """Propose to remove lagging members from the ISRs led here; call it every half lag time."""
        now_ms = self._clock.monotonic_ms()
        for partition in list(self.partitions.values()):
            partition.maybe_shrink(now_ms)
            partition.on_low_watermark.notify()  # dead replicas do not count any more

    def checkpoint_high_watermarks(self) -> None:
        """Write every high watermark to the log directories. Raises OSError.

        A log without a role keeps its checkpointed one: a crash before the first LeaderAndIsr must
        not lose it.
        """
        watermarks = {}
        for plog in self._logs.logs():
            key = (plog.topic, plog.partition)
            hosted = self.partitions.get(key)
            watermarks[key] = (
                hosted.log.high_watermark
                if hosted is not None
                else self._logs.high_watermark_checkpoint(*key)
            )
        self._logs.checkpoint_high_watermarks(watermarks)

    def monotonic_ms(self) -> float:
        return self._clock.monotonic_ms()

    async def close(self) -> None:
        """Stop fetchers, moves and ISR proposals; logs stay open."""
        self.proposals.close()
        await self.moves.close()
        await self.fetchers.close()
