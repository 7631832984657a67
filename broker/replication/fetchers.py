"""Fetchers of followed partitions: a few tasks for each leader, one request for many partitions."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from urteil.broker.net.channels import Endpoint
from urteil.broker.replication.fetch_session_client import FetchSessionClient
from urteil.broker.replication.followed_partition import FollowedPartition
from urteil.broker.replication.partition import Partition
from urteil.broker.replication.replication_throttle import Throttle
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
)

if TYPE_CHECKING:
    from urteil.broker.base.clock import Clock
    from urteil.broker.config.broker_config import BrokerConfig
    from urteil.broker.net.channels import Channels

log = logging.getLogger("fetcher")

FETCH_VERSION = 17
LIST_OFFSETS_VERSION = 9
EARLIEST, LATEST = -2, -1
_SESSION_LOST = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
TopicPartition = tuple[str, int]


class Fetchers:
    """The fetchers of this broker. Adding a partition again moves it to a new leader or epoch."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        channels: Channels,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._config = config
        self._clock = clock
        self._channels = channels
        self._broker_epoch = broker_epoch
        self._throttle = Throttle(config.properties, "follower", clock.monotonic_ms)
        self._fetchers: dict[tuple[Endpoint, int], _Fetcher] = {}

    def add(self, leader: Endpoint, partition: Partition) -> None:
        """Fetch a partition from `leader`, in its current epoch, from the end of the log."""
        self.remove([(partition.topic, partition.partition)])
        number = zlib.crc32(repr(partition).encode()) % self._config.num_replica_fetchers
        fetcher = self._fetchers.get((leader, number))
        if fetcher is None:
            fetcher = self._fetchers[leader, number] = _Fetcher(
                leader,
                number,
                self._config,
                self._clock,
                self._channels,
                self._throttle,
                self._broker_epoch,
            )
        fetcher.add(FollowedPartition(partition))

    def is_following(self, key: TopicPartition) -> bool:
        return any(key in fetcher.following for fetcher in self._fetchers.values())

    def remove(self, keys: Iterable[TopicPartition]) -> None:
        """Stop fetching these partitions; responses under way for them are ignored."""
        for key in keys:
            for fetcher in self._fetchers.values():
                fetcher.following.pop(key, None)

    def close_idle(self) -> None:
        """End the tasks without partitions."""
        for key in [key for key, fetcher in self._fetchers.items() if not fetcher.following]:
            self._fetchers.pop(key).task.cancel()

    async def close(self) -> None:
        tasks = [fetcher.task for fetcher in self._fetchers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._fetchers.clear()


class _Fetcher:
    """One task that fetches its partitions from one leader."""

    def __init__(
        self,
        leader: Endpoint,
        number: int,
        config: BrokerConfig,
        clock: Clock,
        channels: Channels,
        throttle: Throttle,
        broker_epoch: Callable[[], int],
    ) -> None:
        self.leader = leader
        self._broker_epoch = broker_epoch
        self._purpose = f"fetcher-{number}"
        self._throttle = throttle
        self.following: dict[TopicPartition, FollowedPartition] = {}
        self._config = config
        self._clock = clock
        self._channels = channels
        self._session = FetchSessionClient(config.replica_fetch_max_bytes)
        self._template = FetchRequest(
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
        )
        self._wakeup = asyncio.Event()
        self._has_warned = False
        self.task = asyncio.get_running_loop().create_task(self._run())

    def add(self, following: FollowedPartition) -> None:
        self.following[following.key] = following
        self._wakeup.set()

    async def _run(self) -> None:
        while True:
            now_ms = self._clock.monotonic_ms()
            is_held_back = self._throttle.is_exceeded
            ready = [
                followed
                for followed in self.following.values()
                if followed.retry_at_ms <= now_ms
                and not (is_held_back and followed.is_behind and followed.is_throttled)
            ]
            if not ready:
                await self._idle(now_ms)
                continue
            try:
                await self._round(ready)
                self._has_warned = False
            except (ConnectionError, TimeoutError) as error:
                self._warn_once(error)
                await asyncio.sleep(self._config.replica_fetch_backoff_ms / 1000)
            except Exception:
                log.exception("fetching from broker %d failed", self.leader.id)
                await asyncio.sleep(self._config.replica_fetch_backoff_ms / 1000)

    async def _idle(self, now_ms: float) -> None:
        """Wait until a partition is added or the first backoff or the throttle ends."""
        self._wakeup.clear()
        soon_ms = now_ms + self._config.replica_fetch_backoff_ms  # for throttled partitions
        retries = [
            followed.retry_at_ms if followed.retry_at_ms > now_ms else soon_ms
            for followed in self.following.values()
        ]
        timeout_s = (min(retries) - now_ms) / 1000 if retries else None
        try:
            async with asyncio.timeout(timeout_s):
                await self._wakeup.wait()
        except TimeoutError:
            return

    def _warn_once(self, error: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning("cannot fetch from broker %d: %s", self.leader.id, error)

    async def _round(self, ready: list[FollowedPartition]) -> None:
        try:
            response: FetchResponse = await self._channels.send(
                self.leader,
                self._session.request(
                    ready, replace(self._template, replica_state=self._replica_state())
                ),
                FETCH_VERSION,
                self._config.replica_socket_timeout_ms,
                purpose=self._purpose,
            )
        except (ConnectionError, TimeoutError):
            self._session.on_failure()
            raise
        self._session.on_response(response)
        error = ErrorCode(response.error_code)
        if error in _SESSION_LOST:
            return
        if error is not ErrorCode.NONE:
            raise ConnectionError(f"fetch refused: {error.name}")
        if response.responses:
            await self._apply_response(ready, response)

    def _replica_state(self) -> FetchRequest.ReplicaState:
        return FetchRequest.ReplicaState(
            replica_id=self._config.broker_id, replica_epoch=self._broker_epoch()
        )

    async def _apply_response(
        self, ready: list[FollowedPartition], response: FetchResponse
    ) -> None:
        by_key = {followed.wire_key: followed for followed in ready}
        out_of_range = []
        for topic in response.responses:
            for data in topic.partitions:
                followed = by_key.get((topic.topic_id, data.partition_index))
                if followed is None or self.following.get(followed.key) is not followed:
                    continue
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    out_of_range.append(followed)
                else:
                    self._apply_partition(followed, data)
        for followed in out_of_range:
            await self._reset_position(followed)

    def _apply_partition(
        self, followed: FollowedPartition, data: FetchResponse.PartitionData
    ) -> None:
        error = ErrorCode(data.error_code)
        if error is ErrorCode.NONE:
            if data.records and followed.is_throttled:
                self._throttle.record(len(data.records))  # in sync or not (KIP-73)
            try:
                error = followed.apply_response(data, self._clock.now_ms())
            except OSError as failure:
                self._handle_storage_error(followed, failure)
                return
            except Exception:
                log.exception(
                    "%s: cannot apply records of broker %d", followed.partition, self.leader.id
                )
                error = ErrorCode.UNKNOWN_SERVER_ERROR
        if error is not ErrorCode.NONE:
            self._back_off(followed, error)

    def _change(self, followed: FollowedPartition, do: Callable[[], None]) -> None:
        try:
            do()
        except OSError as failure:
            self._handle_storage_error(followed, failure)

    def _handle_storage_error(self, followed: FollowedPartition, failure: OSError) -> None:
        """Fail the log's directory and stop fetching this partition; the others continue."""
        followed.partition.log.fail(failure)
        self.following.pop(followed.key, None)

    def _back_off(self, followed: FollowedPartition, error: ErrorCode) -> None:
        """Skip the partition until its backoff ends; a newer LeaderAndIsr replaces it earlier."""
        if followed.last_error is not error:
            log.info("%s: broker %d answered %s", followed.partition, self.leader.id, error.name)
        followed.last_error = error
        followed.retry_at_ms = self._clock.monotonic_ms() + self._config.replica_fetch_backoff_ms

    async def _reset_position(self, followed: FollowedPartition) -> None:
        """Handle OFFSET_OUT_OF_RANGE: truncate to the leader's end, or restart at its log start."""
        latest = await self._leader_offset(followed, LATEST)
        if isinstance(latest, ErrorCode):
            self._back_off(followed, latest)
            return
        if self.following.get(followed.key) is not followed:
            return
        if latest < followed.partition.log.log_end_offset:
            self._change(followed, lambda: followed.truncate_to(latest))
            return
        earliest = await self._leader_offset(followed, EARLIEST)
        if isinstance(earliest, ErrorCode):
            self._back_off(followed, earliest)
        elif self.following.get(followed.key) is followed:
            if earliest <= followed.partition.log.log_end_offset:
                self._back_off(followed, ErrorCode.OFFSET_OUT_OF_RANGE)  # in range now: fetch again
            self._change(followed, lambda: followed.restart_from(earliest))

    async def _leader_offset(self, followed: FollowedPartition, which: int) -> int | ErrorCode:
        partition = followed.partition
        request = ListOffsetsRequest(
            replica_id=self._config.broker_id,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=partition.topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=partition.partition,
                            current_leader_epoch=followed.leader_epoch,
                            timestamp=which,
                        )
                    ],
                )
            ],
        )
        response = await self._channels.send(
            self.leader,
            request,
            LIST_OFFSETS_VERSION,
            self._config.replica_socket_timeout_ms,
            purpose=self._purpose,
        )
        answer = response.topics[0].partitions[0]
        error = ErrorCode(answer.error_code)
        return error if error is not ErrorCode.NONE else int(answer.offset)
