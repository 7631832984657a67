"""What clients do in a run: each mix is a load of its own, with settings of the brokers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from urteil.harness.conformance.required_settings import LIMITS
from urteil.suites.simulation.administration import Administrator
from urteil.suites.simulation.client import Client
from urteil.suites.simulation.copiers import Copier
from urteil.suites.simulation.evidence import COMMITTED, Evidence
from urteil.suites.simulation.group_drill import GroupDrill
from urteil.suites.simulation.groups import Member, PositionAsker
from urteil.suites.simulation.history import History
from urteil.suites.simulation.lookups import EndAsker, LookupClient
from urteil.suites.simulation.loop import SimulatedLoop
from urteil.suites.simulation.producers import KeyedProducer, Producer, Repeater
from urteil.suites.simulation.readers import CommittedReader, Reader
from urteil.suites.simulation.record_deletion import RecordDeleter
from urteil.suites.simulation.simple_groups import CHECK_MS, SimpleGroupClient
from urteil.suites.simulation.transactions import CLEANUP_MS, TIMEOUT_MS, KeyedWriter, Writer

TOPIC = "t"
PRODUCERS = 4
REPEATING = 2
"""The number of the idempotent producer that also repeats batches."""
RETENTION_MS = "retention.ms"
LONG_MS, CHANGE_S = 1_200_000, 3.0
"""The retention before the last change, and the time to the first change."""
CALM_SENDS = 24
CALM_S = 6.0
"""About the time in which the producers after the recovery send."""
TRANSACTIONAL_IDS = ("x1", "x2", "shared", "shared")
INSTANCES = (None, None, None, "static", "static")
REPLICATION, TRANSACTIONS, GROUPS = "replication", "transactions", "groups"
COMPACTION, RETENTION, ADMINISTRATION = "compaction", "retention", "administration"
QUESTIONS, COMPACTED_TRANSACTIONS = "questions", "compacted-transactions"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything; `without` names clients that do nothing."""

    sends: int = 1000
    faults_s: float = 60.0
    recovery_s: float = 90.0
    partitions: int = 3
    without: tuple[str, ...] = ()


class Mix:
    """The clients of a run, under way. `final_readers` are new ones."""

    properties: ClassVar[Mapping[str, str | None]] = {}
    configs: ClassVar[dict[str, str]] = {}
    """Of the topic."""
    first_configs: ClassVar[dict[str, str]] = {}
    """Those with which the topic is created, if not `configs`: a client changes them."""
    scale: ClassVar[Scale] = Scale()
    moves_clocks: ClassVar[bool] = True
    late_s: ClassVar[float] = 0.0
    """How long brokers may keep what has to go."""
    has_racks: ClassVar[bool] = False
    """Each broker is in a rack of its own."""
    restarts_in_calm: ClassVar[bool] = False
    """One broker restarts after `settle`."""
    deletes_files_soon: ClassVar[bool] = False
    """Files that are marked for deletion when `settle` begins are deleted when it ends."""

    def __init__(
        self, loop: SimulatedLoop, history: History, rng: random.Random, scale: Scale
    ) -> None:
        self._loop, self._history, self._rng = loop, history, rng
        self._partitions, self._without = scale.partitions, scale.without
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

    def _produce(self, client: Client, running: Coroutine[Any, Any, None]) -> None:
        if client.name in self._without:
            running.close()
            return
        self.producing.append(client.host.create_task(running))
        self.names.append(client.name)

    def _follow(self, kind: type[Reader]) -> None:
        readers = [
            kind(self._loop, f"r{n}", self._history, self._seed()) for n in range(self._partitions)
        ]
        self._readers = readers
        self.following += [
            reader.host.create_task(reader.follow(TOPIC, n)) for n, reader in enumerate(readers)
        ]
        self.names += [reader.name for reader in readers]


class Replication(Mix):
    """Two idempotent producers, two plain ones, a reader for each partition, and a client that
    looks up offsets. After the recovery, two more producers."""

    producer: ClassVar[type[Producer]] = Producer
    properties: ClassVar[Mapping[str, str | None]] = {
        "producer.id.expiration.check.interval.ms": "5000"
    }
    restarts_in_calm: ClassVar[bool] = True
    calm_sends: ClassVar[int] = CALM_SENDS
    """The sends of each producer after the recovery."""

    def _begin(self, scale: Scale) -> None:
        for n in range(PRODUCERS):
            kind = Repeater if n == REPEATING and not self.configs else self.producer
            producer = kind(self._loop, f"p{n}", self._history, self._seed(), idempotent=n % 2 == 0)
            share = scale.sends // PRODUCERS
            pause_s = scale.faults_s / share
            self._produce(producer, producer.run(TOPIC, self._partitions, share, pause_s))
        self._follow(Reader)
        self._asker = LookupClient(self._loop, "lookups", self._history, self._seed())
        asking = self._asker.run(TOPIC, self._partitions, 0.5)
        self.following.append(self._asker.host.create_task(asking))
        self.names.append(self._asker.name)

    async def settle(self, evidence: Evidence) -> None:
        """Produce where nothing disturbs, and look up leaders and ends."""
        producers = [
            self.producer(self._loop, f"c{n}", self._history, self._seed(), idempotent=n % 2 == 0)
            for n in range(2 if self.calm_sends else 0)
        ]
        for reader in self._readers:
            reader.forget_leaders()
        pause_s = CALM_S / max(1, self.calm_sends)
        running = [
            each.host.create_task(each.run(TOPIC, self._partitions, self.calm_sends, pause_s))
            for each in producers
        ]
        await asyncio.sleep(CALM_S)
        if running:
            await asyncio.wait(running, timeout=CALM_S)
        for task in running:
            task.cancel()
        await self._asker.host.create_task(self._asker.view(TOPIC))
        for n in range(self._partitions):
            await self._asker.host.create_task(self._asker.find_end(TOPIC, n))
            await self._asker.host.create_task(self._asker.look_up_epochs(TOPIC, n))


class Limited(Replication):
    """Brokers that look every second for what has to go. No clock is wrong."""

    scale = Scale(sends=500, faults_s=30.0)
    moves_clocks = False
    late_s = 1.0
    restarts_in_calm = False
    calm_sends = 0
    properties: ClassVar[Mapping[str, str | None]] = {
        "log.cleaner.backoff.ms": "1000",
        "log.retention.check.interval.ms": "1000",
        "log.initial.task.delay.ms": "1000",
        "log.cleaner.dedupe.buffer.size": "2097152",
    }

    async def settle(self, evidence: Evidence) -> None:
        """Wait until everything that had to go before is gone: guarantees allow 11 s."""
        await asyncio.sleep(1.5 * SETTLING_S - CALM_S)
        await super().settle(evidence)


class Compaction(Limited):
    """Producers of values and tombstones of a few keys, in a topic that is compacted. Its
    `retention.ms` has no effect without the policy `delete`."""

    producer = KeyedProducer
    configs: ClassVar[dict[str, str]] = {
        "cleanup.policy": "compact",
        "segment.bytes": "3000",
        "min.cleanable.dirty.ratio": "0.1",
        "retention.ms": "10000",
    }


class Retention(Limited):
    """The clients of `Replication`. Records are kept for 25 s, which an administrator sets as the
    topic's retention, and segments end after 5 s at the latest. A client deletes records of the
    last partition; others commit, delete and read offsets of groups without members, some of which
    expire."""

    configs: ClassVar[dict[str, str]] = {
        RETENTION_MS: "25000",
        "segment.bytes": "20000",
        "segment.ms": "5000",
    }
    first_configs: ClassVar[dict[str, str]] = {**configs, RETENTION_MS: str(2 * LONG_MS)}
    deletes_files_soon = True
    properties: ClassVar[Mapping[str, str | None]] = {
        **Limited.properties,
        "log.flush.start.offset.checkpoint.interval.ms": "1000",
        "log.segment.delete.delay.ms": "1000",
        "offsets.topic.num.partitions": "1",
        "offsets.retention.check.interval.ms": str(CHECK_MS),
    }

    def _begin(self, scale: Scale) -> None:
        boss = Administrator(self._loop, "boss", self._history, self._seed())
        changing = boss.change_retention(TOPIC, CHANGE_S, LONG_MS, int(self.configs[RETENTION_MS]))
        self._produce(boss, changing)
        deleter = RecordDeleter(self._loop, "deleter", self._history, self._seed())
        until_s = self._loop.time() + scale.faults_s
        running = deleter.run(TOPIC, self._partitions - 1, until_s, pause_s=4.0)
        self._produce(deleter, running)
        for name, act in (
            ("keep", SimpleGroupClient.keep),
            ("delete", SimpleGroupClient.delete),
            ("expire", SimpleGroupClient.expire),
        ):
            client = SimpleGroupClient(self._loop, name, self._history, self._seed())
            self.following.append(client.host.create_task(act(client, TOPIC)))
            self.names.append(name)
        super()._begin(scale)


class Transactions(Mix):
    """Four writers, of which two commit offsets and two share a transactional id; readers of
    committed records; and a client that asks for the ends of partitions."""

    scale = Scale(sends=500, faults_s=30.0)
    writers: ClassVar[tuple[type[Writer], ...]] = (Copier, Copier, Writer, Writer)
    properties: ClassVar[Mapping[str, str | None]] = {
        "transaction.state.log.num.partitions": "2",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(CLEANUP_MS),
        "log.segment.bytes": "5000",
        "offsets.topic.num.partitions": "1",
    }

    def _begin(self, scale: Scale) -> None:
        share = max(1, scale.sends // 6 // len(TRANSACTIONAL_IDS))
        for n, transactional_id in enumerate(TRANSACTIONAL_IDS):
            kind = self.writers[n]
            writer = kind(
                self._loop, f"w{n}", self._history, self._seed(), transactional_id=transactional_id
            )
            pause_s = scale.faults_s / share / 2
            self._produce(writer, writer.run(TOPIC, self._partitions, share, pause_s))
        self._follow(CommittedReader)
        self._asker = EndAsker(self._loop, "ends", self._history, self._seed())
        asking = self._asker.run(TOPIC, self._partitions, 0.5)
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
        for n in range(self._partitions):
            asking = self._asker.ask_end(TOPIC, n, is_stable=is_stable)
            await self._asker.host.create_task(asking)

    def final_readers(self) -> list[Reader]:
        committed = CommittedReader(self._loop, COMMITTED, History(), self._seed())
        self._history.readers_of_committed.append(COMMITTED)
        return [*super().final_readers(), committed]


class CompactedTransactions(Transactions):
    """The clients of `Transactions`, which write values of a few keys in a topic that is compacted
    every second. No clock is wrong."""

    writers: ClassVar[tuple[type[Writer], ...]] = (KeyedWriter,) * len(TRANSACTIONAL_IDS)
    moves_clocks = False
    late_s = Limited.late_s
    configs: ClassVar[dict[str, str]] = Compaction.configs
    properties: ClassVar[Mapping[str, str | None]] = {
        **Limited.properties,
        **Transactions.properties,
    }


class Administration(Replication):
    """The clients of `Replication`, with fewer records, and an administrator."""

    scale = Scale(sends=300, faults_s=40.0)
    restarts_in_calm = False
    calm_sends = 0
    properties: ClassVar[Mapping[str, str | None]] = {
        "leader.imbalance.check.interval.seconds": "5",
        "log.segment.delete.delay.ms": "1000",
    }

    def _begin(self, scale: Scale) -> None:
        administrator = Administrator(self._loop, "boss", self._history, self._seed())
        until_s = self._loop.time() + scale.faults_s
        running = administrator.run(TOPIC, self._partitions, until_s, pause_s=1.0)
        self._produce(administrator, running)
        super()._begin(scale)

    async def settle(self, evidence: Evidence) -> None:
        """Wait until every move and deletion had to end, and leadership to return."""
        await asyncio.sleep(3 * SETTLING_S - CALM_S)
        await super().settle(evidence)


class Groups(Mix):
    """Five members of a group, two of which share an instance id, and a client that asks for its
    committed offsets."""

    scale = Scale(sends=0, faults_s=40.0)
    properties: ClassVar[Mapping[str, str | None]] = {
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "500",
        "offsets.commit.timeout.ms": "2500",
    }

    def _begin(self, scale: Scale) -> None:
        for n, instance in enumerate(INSTANCES):
            member = Member(self._loop, f"m{n}", self._history, self._seed(), instance=instance)
            until_s = self._loop.time() + scale.faults_s
            self._produce(member, member.run(TOPIC, self._partitions, until_s))
        asker = PositionAsker(self._loop, "positions", self._history, self._seed())
        self.following.append(asker.host.create_task(asker.run(TOPIC, self._partitions, 0.5)))
        self.names.append(asker.name)

    async def settle(self, evidence: Evidence) -> None:
        """Members that leave, die and return where nothing disturbs."""
        drill = GroupDrill(self._loop, self._history, self._rng, TOPIC, self._partitions)
        if trouble := await drill.play():
            evidence.troubles.append(trouble)


class Questions(Mix):
    """An examiner, which puts so many questions with known answers. No fault disturbs it, as in the
    lab's scenario `known-answers`."""

    scale = Scale(faults_s=0.0, recovery_s=400.0)
    has_racks = True
    properties: ClassVar[Mapping[str, str | None]] = {
        **LIMITS,
        "auto.create.topics.enable": "true",
        "auto.leader.rebalance.enable": "false",
        "group.initial.rebalance.delay.ms": "300",
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.num.partitions": "5",
        "log.segment.bytes": None,
        "log.retention.ms": None,
        "log.cleaner.dedupe.buffer.size": "2097152",
    }

    def _begin(self, scale: Scale) -> None:
        # imported here, for the questions import every message of kafka-python
        from urteil.suites.simulation.questions import QuestionClient

        examiner = QuestionClient(self._loop, "examiner", self._history, self._seed())
        self._produce(examiner, examiner.run(scale.sends))


SETTLING_S = 10.0
MIXES: dict[str, type[Mix]] = {
    REPLICATION: Replication,
    TRANSACTIONS: Transactions,
    COMPACTED_TRANSACTIONS: CompactedTransactions,
    GROUPS: Groups,
    COMPACTION: Compaction,
    RETENTION: Retention,
    ADMINISTRATION: Administration,
    QUESTIONS: Questions,
}
