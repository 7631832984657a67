"""Requests from this broker to the active controller, which may be this broker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from urteil.broker.base.purgatory import DelayedOperation
from urteil.broker.net.channels import Endpoint
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from urteil.broker.wire.schema import Message

if TYPE_CHECKING:
    from urteil.broker.config.broker_config import BrokerConfig
    from urteil.broker.controller.controller import Controller
    from urteil.broker.net.channels import Channels
    from urteil.broker.replication.metadata_cache import MetadataCache

log = logging.getLogger("shutdown")

ALTER_PARTITION_VERSION = 3
CONTROLLED_SHUTDOWN_VERSION = 3
ALLOCATE_PRODUCER_IDS_VERSION = 0
PURPOSE = "to-controller"


class ControllerClient:
    """Finds the controller by the newest UpdateMetadata, or in this process."""

    def __init__(
        self,
        config: BrokerConfig,
        controller: Controller,
        channels: Channels,
        metadata: MetadataCache,
    ) -> None:
        self._config = config
        self._controller = controller
        self._channels = channels
        self._metadata = metadata

    def _endpoint(self) -> Endpoint:
        controller_id = self._metadata.controller_id
        if controller_id is None:
            raise ConnectionError("no controller is known")
        endpoint = self._metadata.endpoint(controller_id, self._config.inter_broker_listener)
        if endpoint is None:
            raise ConnectionError(f"controller {controller_id} is not alive")
        return endpoint

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Raises ConnectionError or TimeoutError."""
        if self._controller.is_active:
            return await self._controller.alter_partition(request, ALTER_PARTITION_VERSION)
        response: AlterPartitionResponse = await self._send(request, ALTER_PARTITION_VERSION)
        return response

    async def allocate_producer_ids(self, broker_epoch: int) -> tuple[int, int]:
        """Return first and last id of a block. Raises TimeoutError, and ConnectionError, also for
        an error response."""
        request = AllocateProducerIdsRequest(
            broker_id=self._config.broker_id, broker_epoch=broker_epoch
        )
        if self._controller.is_active:
            response = await self._controller.allocate_producer_ids(request)
        else:
            response = await self._send(request, ALLOCATE_PRODUCER_IDS_VERSION)
        if response.error_code != ErrorCode.NONE:
            raise ConnectionError(f"no producer ids: {ErrorCode(response.error_code).name}")
        first = response.producer_id_start
        return first, first + response.producer_id_len - 1

    async def shut_down(self, broker_epoch: Callable[[], int]) -> bool:
        """Request a controlled shutdown until no leadership remains here; return whether that
        succeeded.

        At most `controlled.shutdown.max.retries` attempts, the first included, as in Apache Kafka.
        The last live broker tries once, since no other can take over.
        """
        for attempt in range(self._config.controlled_shutdown_max_retries):
            if attempt and await self._is_left_alone():
                log.info("no other broker is alive")
                break
            request = ControlledShutdownRequest(
                broker_id=self._config.broker_id, broker_epoch=broker_epoch()
            )
            try:
                response = await self._controlled_shutdown(request)
            except (ConnectionError, TimeoutError) as error:
                log.warning("controlled shutdown: %s", error)
                continue
            if response.error_code == ErrorCode.NONE and not response.remaining_partitions:
                log.info("controlled shutdown succeeded")
                return True
            log.info(
                "controlled shutdown: %s, %d partitions remain",
                ErrorCode(response.error_code).name,
                len(response.remaining_partitions),
            )
        log.warning("going down without controlled shutdown")
        return False

    async def _is_left_alone(self) -> bool:
        """Whether no other broker is alive, now or at any time in the backoff before a retry."""
        me = {self._config.broker_id}

        def look() -> bool | None:
            return self._metadata.brokers.keys() <= me or None

        backoff_ms = self._config.controlled_shutdown_retry_backoff_ms
        return await DelayedOperation(look, lambda: False).wait(
            [self._metadata.on_update], backoff_ms
        )

    async def _controlled_shutdown(
        self, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        if self._controller.is_active:
            return await self._controller.controlled_shutdown(request)
        response: ControlledShutdownResponse = await self._send(
            request, CONTROLLED_SHUTDOWN_VERSION
        )
        return response

    async def _send(self, request: Message, version: int) -> Any:
        """Raises ConnectionError or TimeoutError."""
        return await self._channels.send(
            self._endpoint(),
            request,
            version,
            self._config.controller_socket_timeout_ms,
            purpose=PURPOSE,
        )
