"""What all parts of one term of office work with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from urteil.broker.controller.context import Context
from urteil.broker.controller.partition_machine import PartitionMachine
from urteil.broker.controller.requests import RequestBatch
from urteil.broker.controller.senders import Senders
from urteil.broker.controller.store import Store


@dataclass(frozen=True, slots=True)
class Desk:
    """What is known, how it is written, and how brokers hear of it.

    `progress` is set at every change of anything.
    """

    context: Context
    store: Store
    machine: PartitionMachine
    senders: Senders
    listener: str
    progress: asyncio.Event = field(default_factory=asyncio.Event)

    def batch(self) -> RequestBatch:
        return RequestBatch(self.context, self.listener)

    def batch_for_all(self) -> RequestBatch:
        """A batch that tells everybody at least which brokers are alive."""
        batch = self.batch()
        batch.update_metadata([])
        return batch

    def send(self, batch: RequestBatch) -> None:
        for broker, requests in batch.build().items():
            for request in requests:
                self.senders.send(broker, request)
        self.progress.set()
