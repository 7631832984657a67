"""What clients do in a run: each mix is a load of its own, with settings of the brokers."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import ClassVar

from urteil.suites.simulation.checks import COMMITTED, Evidence
from urteil.suites.simulation.client import CommittedReader, History, Producer, Reader
from urteil.suites.simulation.loop import SimulatedLoop
from urteil.suites.simulation.transactions import CLEANUP_MS, TIMEOUT_MS, EndAsker, Writer

TOPIC = "t"
PARTITIONS = 3
PRODUCERS = 4
WRITERS = ("x1", "x2", "shared", "shared")
REPLICATION, TRANSACTIONS = "replication", "transactions"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything."""

    sends: int = 1000
    faults_s: float = 60.0
    recovery_s: float = 90.0


class Mix:
    """The clients of a run, under way. `final_readers` are new ones."""

    properties: ClassVar[dict[str, str]] = {}
    scale: ClassVar[Scale] = Scale()

    def __init__(
        self, loop: SimulatedLoop, history: History, rng: random.Random, scale: Scale
    ) -> None:
        self._loop, self._history, self._rng = loop, history, rng
        self.producing: list[asyncio.Task[None]] = []
        self.following: list[asyncio.Task[None]] = []
        self.names: list[str] = []
        self._begin(scale)

    def _begin(self, scale: Scale) -> None:
        raise NotImplementedError

    async def settle(self, evidence: Evidence) -> None:
        """After recovery, before clients end."""

    def final_readers(self) -> list[Reader]:
        return [Reader(self._loop, "final", History(), self._seed())]

    def _seed(self) -> int:
        return self._rng.getrandbits(64)

    def _follow(self, kind: type[Reader]) -> None:
        readers = [
            kind(self._loop, f"r{n}", self._history, self._seed()) for n in range(PARTITIONS)
        ]
        self.following += [
            reader.host.create_task(reader.follow(TOPIC, n)) for n, reader in enumerate(readers)
        ]
        self.names += [reader.name for reader in readers]


class Replication(Mix):
    """Two idempotent producers, two plain ones, and a reader for each partition."""

    def _begin(self, scale: Scale) -> None:
        for n in range(PRODUCERS):
            producer = Producer(
                self._loop, f"p{n}", self._history, self._seed(), idempotent=n % 2 == 0
            )
            share = scale.sends // PRODUCERS
            pause_s = scale.faults_s / share
            running = producer.run(TOPIC, PARTITIONS, share, pause_s)
            self.producing.append(producer.host.create_task(running))
            self.names.append(producer.name)
        self._follow(Reader)


class Transactions(Mix):
    """Four writers, two of which share a transactional id; readers of committed records; and a
    client that asks for the ends of partitions."""

    scale = Scale(sends=500, faults_s=30.0)
    properties: ClassVar[dict[str, str]] = {
        "transaction.state.log.num.partitions": "2",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(CLEANUP_MS),
        "log.segment.bytes": "5000",
    }

    def _begin(self, scale: Scale) -> None:
        share = max(1, scale.sends // 6 // len(WRITERS))
        for n, transactional_id in enumerate(WRITERS):
            writer = Writer(
                self._loop, f"w{n}", self._history, self._seed(), transactional_id=transactional_id
            )
            running = writer.run(TOPIC, PARTITIONS, share, scale.faults_s / share / 2)
            self.producing.append(writer.host.create_task(running))
            self.names.append(writer.name)
        self._follow(CommittedReader)
        self._asker = EndAsker(self._loop, "ends", self._history, self._seed())
        asking = self._asker.run(TOPIC, PARTITIONS, 0.5)
        self.following.append(self._asker.host.create_task(asking))
        self.names.append(self._asker.name)

    async def settle(self, evidence: Evidence) -> None:
        """Wait until every transaction timed out, and ask for both ends before and after."""
        await asyncio.sleep((TIMEOUT_MS + 2 * CLEANUP_MS) / 1000 + SETTLING_S)
        await self._ask_ends(is_stable=False)
        evidence.txns_over_s = self._loop.time()
        await asyncio.sleep(SETTLING_S)
        await self._ask_ends(is_stable=True)

    async def _ask_ends(self, *, is_stable: bool) -> None:
        for n in range(PARTITIONS):
            asking = self._asker.ask_end(TOPIC, n, is_stable=is_stable)
            await self._asker.host.create_task(asking)

    def final_readers(self) -> list[Reader]:
        committed = CommittedReader(self._loop, COMMITTED, History(), self._seed())
        self._history.readers_of_committed.append(COMMITTED)
        return [*super().final_readers(), committed]


SETTLING_S = 10.0
MIXES: dict[str, type[Mix]] = {REPLICATION: Replication, TRANSACTIONS: Transactions}
