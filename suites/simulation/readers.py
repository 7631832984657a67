"""Readers that follow a partition while it is written, and read it from its start in the end."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from urteil.broker.wire.errors import ErrorCode
from urteil.suites.simulation.client import LOST, Client
from urteil.suites.simulation.fetched_records import FetchAnswer
from urteil.suites.simulation.history import Poll, Read

WAIT_MS = 500
"""The wait of a fetch for a first record."""
SHORT_POLLS = 0.1
"""The share of the polls that return one record."""
RESET = "reset"
RESET_PAUSE_S = 0.2


class Sweep(NamedTuple):
    """Where a pass over a partition began and ended, and the partition's end then."""

    begin: int
    position: int
    end: int


class Reader(Client):
    """Follows one partition for as long as it is let, and reads it whole in the end."""

    is_committed = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._polls = 0

    @property
    def reads(self) -> list[Read]:
        return self.history.reads

    async def follow(self, topic: str, partition: int) -> None:
        """Fetch for ever. Some polls return a part of the records, and the next one continues
        within a batch, as with max.poll.records."""
        position = 0
        while True:
            try:
                position = await self._poll(topic, partition, position)
            except LOST:
                await self.forget_leader(topic, partition)

    async def _poll(self, topic: str, partition: int, position: int) -> int:
        node = await self.leader(topic, partition)
        most = 1 if self.rng.random() < SHORT_POLLS else None
        fetched = await self._fetch(node, topic, partition, position, WAIT_MS, most)
        if fetched.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            return await self._reset(topic, partition, position)
        if fetched.error:
            await self.forget_leader(topic, partition)
            return position
        return fetched.next_offset

    async def _fetch(
        self, node: int, topic: str, partition: int, position: int, wait_ms: int,
        most: int | None = None,
    ) -> FetchAnswer:  # fmt: skip
        """Fetch, and record the poll and its records, `most` at most. Raises ConnectionError,
        TimeoutError."""
        began_s = self._loop.time()
        fetched = await self.fetch(
            node, topic, partition, position, wait_ms, is_committed=self.is_committed
        )
        now_s = self._loop.time()
        if most is not None and len(fetched.records) > most:
            records = fetched.records[:most]
            fetched = fetched._replace(records=records, next_offset=records[-1].offset + 1)
        error = ErrorCode(fetched.error).name if fetched.error else None
        after = position if error else fetched.next_offset
        self._polls += 1
        self.history.polls.append(
            Poll(self.name, self._polls, topic, partition, position, after, node, began_s, now_s,
                 error)
        )  # fmt: skip
        if error is None:
            self.history.reads += [
                Read(self.name, topic, partition, offset, value, epoch, now_s, key, timestamp_ms,
                     self._polls, n)
                for n, (offset, value, epoch, key, timestamp_ms) in enumerate(fetched.records)
            ]  # fmt: skip
        return fetched

    async def _reset(self, topic: str, partition: int, position: int) -> int:
        """Move to the start of the log. Pause if it is the offset that was out of range. Raises
        ConnectionError, TimeoutError."""
        began_s = self._loop.time()
        start = await self.earliest(topic, partition)
        self._polls += 1
        self.history.polls.append(
            Poll(self.name, self._polls, topic, partition, position, start, -1, began_s,
                 self._loop.time(), None, RESET)
        )  # fmt: skip
        if start == position:
            await asyncio.sleep(RESET_PAUSE_S)
        return start

    async def sweep(self, topic: str, partition: int) -> Sweep:
        """Everything from the start of the log to its end."""
        begin = position = 0
        end = 1
        while position < end:
            try:
                node = await self.leader(topic, partition)
                fetched = await self._fetch(node, topic, partition, position, 0)
                if fetched.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                    begin = position = await self._reset(topic, partition, position)
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
            position = fetched.next_offset
        return Sweep(begin, position, end)


class CommittedReader(Reader):
    """Reads under read_committed."""

    is_committed = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.history.readers_of_committed.append(self.name)
