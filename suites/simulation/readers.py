"""Readers that follow a partition while it is written, and read it from its start in the end."""

from __future__ import annotations

from typing import Any, NamedTuple

from urteil.broker.wire.errors import ErrorCode
from urteil.suites.simulation.client import LOST, Client
from urteil.suites.simulation.fetched_records import FetchAnswer, Fetched
from urteil.suites.simulation.history import Read


class Sweep(NamedTuple):
    """Where a pass over a partition began and ended, and the partition's end then."""

    begin: int
    position: int
    end: int


class Reader(Client):
    """Follows one partition for as long as it is let, and reads it whole in the end."""

    is_committed = False

    @property
    def reads(self) -> list[Read]:
        return self.history.reads

    async def follow(self, topic: str, partition: int) -> None:
        position = 0
        while True:
            try:
                position = await self._poll(topic, partition, position)
            except LOST:
                await self.forget_leader(topic, partition)

    async def _poll(self, topic: str, partition: int, position: int) -> int:
        node = await self.leader(topic, partition)
        fetched = await self.fetch(
            node, topic, partition, position, 500, is_committed=self.is_committed
        )
        if fetched.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            return await self.earliest(topic, partition)
        if fetched.error:
            await self.forget_leader(topic, partition)
            return position
        self._keep(topic, partition, fetched.records)
        return fetched.next_offset

    def _keep(self, topic: str, partition: int, records: list[Fetched]) -> None:
        now = self._loop.time()
        self.history.reads += [
            Read(self.name, topic, partition, offset, value, epoch, now, key, timestamp_ms)
            for offset, value, epoch, key, timestamp_ms in records
        ]

    async def sweep(self, topic: str, partition: int) -> Sweep:
        """Everything from the start of the log to its end."""
        begin = position = 0
        end = 1
        while position < end:
            try:
                node = await self.leader(topic, partition)
                fetched = await self.fetch(
                    node, topic, partition, position, 0, is_committed=self.is_committed
                )
                if fetched.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                    begin = position = await self.earliest(topic, partition)
                    end = position + 1
                    continue
            except LOST:
                fetched = FetchAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, 0, [], position)
            if fetched.error:
                end = position + 1
                await self.forget_leader(topic, partition)
                continue
            end = fetched.end
            if fetched.next_offset == position:
                break
            self._keep(topic, partition, fetched.records)
            position = fetched.next_offset
        return Sweep(begin, position, end)


class CommittedReader(Reader):
    """Reads under read_committed."""

    is_committed = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.history.readers_of_committed.append(self.name)
