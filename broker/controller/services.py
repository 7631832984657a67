"""The state and the services that the event handlers of one term share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from urteil.broker.controller.controller_context import ControllerContext
from urteil.broker.controller.metadata_store import MetadataStore
from urteil.broker.controller.partition_state_machine import PartitionStateMachine
from urteil.broker.controller.request_batch import RequestBatch
from urteil.broker.controller.request_senders import RequestSenders


@dataclass(frozen=True, slots=True)
class Services:
    """The context, the store that writes to ZooKeeper, and the senders to the brokers.

    `progress` is set after each change.
    """

    context: ControllerContext
    store: MetadataStore
    machine: PartitionStateMachine
    senders: RequestSenders
    listener: str
    progress: asyncio.Event = field(default_factory=asyncio.Event)

    def batch(self) -> RequestBatch:
        return RequestBatch(self.context, self.listener)

    def batch_for_all(self) -> RequestBatch:
        """A batch that sends every broker at least the list of live brokers."""
        batch = self.batch()
        batch.update_metadata([])
        return batch

    def send(self, batch: RequestBatch) -> None:
        for broker, requests in batch.build().items():
            for request in requests:
                self.senders.send(broker, request)
        self.progress.set()
