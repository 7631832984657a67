"""One generated history: a topic of two partitions with its producers and readers. Events happen
one after another at rising times, but operations of different clients overlap. The seed decides
settings, clients, outcomes, elections, rebalances and seeks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.harness.verify.histories.log import (
    BEGIN_NS,
    BROKERS,
    CRASH_NS,
    END_NS,
    HEALED_NS,
    MS,
    Log,
    Row,
    S,
)
from tests.harness.verify.histories.producers import GIVES_UP_NS, Producer
from tests.harness.verify.histories.readers import Group, Reader

KINDS = ("plain", "lax", "transactional", "compacted", "retained", "tables")
"""`tables` are compacted, and written to in transactions."""
TRANSACTIONAL, COMPACTED = ("transactional", "tables"), ("compacted", "tables")
RETENTION_NS = 20 * S
FAR = 40_000_000
STEPS = 260
NEVER_ALONE = ("lax", *TRANSACTIONAL)


@dataclass(slots=True, kw_only=True)
class History:
    """The topic `h<number>` of run `run`, played to its end."""

    run: str
    number: int
    kind: str
    seed: int
    steps: int = STEPS
    random: Random = field(init=False)
    logs: list[Log] = field(default_factory=list)
    producers: list[Producer] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    group: Group = field(init=False)
    answers: list[Row] = field(default_factory=list)
    now_ns: int = BEGIN_NS
    ids: int = 10
    pending: list[tuple[Producer, Log, list[Row], int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(f"{self.kind}/{self.seed}")
        name, topic_id = self.topic, f"id-of-{self.topic}"
        self.logs = [Log(random=self.random, topic_id=topic_id, topic=name, partition=n)
                     for n in range(2)]  # fmt: skip
        for log in self.logs:
            log.leader = self.random.choice(BROKERS)
            log.epochs[0] = 0
            log.advance(BEGIN_NS - 5 * S)
        self.producers = [self._producer(n) for n in range(3)]
        self.readers = [
            Reader(
                name=f"{name}-c{n}",
                log=self.random.choice(self.logs),
                random=self.random,
                committed=self.kind in TRANSACTIONAL and n == 0,
                began=(0, BEGIN_NS),
            )
            for n in range(2)
        ]
        members = [f"{name}-g{n}" for n in range(2)]
        self.group = Group(name=f"{name}-g", members=members, logs=self.logs, random=self.random)

    @property
    def topic(self) -> str:
        return f"h{self.number}"

    def _producer(self, n: int) -> Producer:
        lax = self.kind == "lax"
        return Producer(
            run=self.run,
            name=f"{self.topic}-p{n}",
            random=self.random,
            acks=(0, 1, -1)[n] if lax else -1,
            idempotent=not lax,
            transactional=self.kind in TRANSACTIONAL and n < 2,
            deletes=self.kind in COMPACTED,
            keys=90 if self.kind == "tables" else 8,
            producer_id=self._producer_id(n),
        )

    def _producer_id(self, n: int) -> int:
        return self.number * 1000 + n

    # -- playing --------------------------------------------------------------------------------

    def play(self) -> History:
        """Plays to the end: nothing is pending, everything is committed, every process is
        healthy."""
        self.group.rebalance(self.now_ns)
        for step in range(self.steps):
            self.now_ns = BEGIN_NS + (step + 1) * (END_NS - BEGIN_NS - S) // self.steps
            self._tend_isr()
            self._act()
        for reader in self.readers:
            for _ in range(self.random.randint(0, 40)):
                reader.poll(self._later())
        self._settle()
        for reader in self.readers:
            reader.close(self.now_ns)
        return self

    def _later(self) -> int:
        self.now_ns += self.random.randint(MS, 3 * MS)
        return self.now_ns

    def _tend_isr(self) -> None:
        """Broker 1 is dead for a while, in every history of the run; followers come back."""
        down = CRASH_NS <= self.now_ns < HEALED_NS
        for log in self.logs:
            if log.alone and self.now_ns >= log.alone_until_ns:
                log.isr = BROKERS
                log.advance(self.now_ns)
            if down and 1 in log.isr:
                self._elect(log, log.leader if log.leader != 1 else self.random.choice((2, 3)))
            elif not (down or log.alone) and 1 not in log.isr:
                log.isr = (*log.isr, 1)
                log.advance(self.now_ns)

    def _elect(self, log: Log, leader: int) -> None:
        if log.alone:
            return
        if 1 in log.isr and CRASH_NS <= self.now_ns < HEALED_NS:
            if leader == log.leader:
                log.isr = (2, 3)
                log.advance(self.now_ns)
                return
            log.elect(self.now_ns, leader, (2, 3))
        else:
            log.elect(self.now_ns, leader, log.isr)

    def _act(self) -> None:
        log, producer = self.random.choice(self.logs), self.random.choice(self.producers)
        reader, at_ns = self.random.choice(self.readers), self._later()
        acts: dict[Callable[[], object], int] = {
            lambda: self._send(producer, log): 45,
            self._settle_one: 12,
            log.commit: 6,
            lambda: reader.poll(at_ns): 14,
            lambda: self._group(log, at_ns): 16,
            lambda: self._elect(log, self.random.choice(log.isr)): 3,
            lambda: self._seek(reader, at_ns): 2,
            lambda: self._begin_anew(reader, at_ns): 1,
            lambda: self._kill(producer, at_ns): 1,
            lambda: self._rebalance(at_ns): 2,
            lambda: self._look_up(log, at_ns): 4,
            lambda: self._end(producer, at_ns): 6,
            lambda: self._delete(log): 4,
            lambda: self._skip(log): 2,
            lambda: self._shrink(log): 3,
        }
        self.random.choices(list(acts), list(acts.values()))[0]()

    def _seek(self, reader: Reader, at_ns: int) -> None:
        where = self.random.randint(reader.log.start, reader.log.high)
        reader.jump(at_ns, where, self.random.choice(("seek", "reset")))

    def _begin_anew(self, reader: Reader, at_ns: int) -> None:
        reader.restart(at_ns, self.random.choice((reader.log.start, reader.position)))

    def _rebalance(self, at_ns: int) -> None:
        self.group.rebalance(at_ns)
        self.now_ns += 5 * MS

    def _skip(self, log: Log) -> None:
        """A gap in the offsets, as the cleaner leaves it: of some records, or of very many."""
        if self.kind in COMPACTED and log.end < FAR:
            log.commit()
            log.skip(FAR - log.end if self.random.random() < 0.5 else self.random.randint(1, 90))
            log.commit()

    def _shrink(self, log: Log) -> None:
        """Followers fall behind, well before the crash; nothing is under way then."""
        until_ns = self.now_ns + 3 * S
        begun = any(waiting[1] is log for waiting in self.pending)
        if until_ns < CRASH_NS and not (log.alone or begun or self.kind in NEVER_ALONE):
            log.commit()
            log.shrink(self.now_ns, until_ns)

    def _group(self, log: Log, at_ns: int) -> None:
        what = self.random.choices(("poll", "commit", "late", "ask"), (6, 4, 1, 1))[0]
        if what == "poll":
            self.group.poll(log, at_ns)
        elif what == "commit":
            self.group.commit(log, at_ns)
        elif what == "late":
            self.group.commit_late(log, at_ns)
        else:
            self.group.ask_from_outside(log, at_ns, f"{self.topic}-o")
        self.now_ns += 2 * MS

    # -- sending --------------------------------------------------------------------------------

    def _send(self, producer: Producer, log: Log) -> None:
        """One to three batches, and their outcomes."""
        if producer.transactional and producer.txn is None:
            producer.begin(self._later())
        if any(waiting[0] is producer for waiting in self.pending):
            self._settle_of(producer)
        at_ns = self._later()
        rows = producer.invoke(log, at_ns, self.random.randint(1, 4))
        fate = self.random.choices(
            ("fine", "unanswered", "part", "nowhere", "refused"), (70, 14, 4, 4, 4)
        )[0]
        if log.alone:
            producer.refuse(rows, self._later(), "NOT_ENOUGH_REPLICAS")
        elif producer.acks == 0:
            self._forget(producer, log, rows, at_ns)
        elif fate == "fine":
            base = producer.append(log, rows, at_ns)
            if producer.acks == -1:
                log.commit()
            producer.acknowledge(log, rows, self._later(), base)
        elif fate == "unanswered":
            self.pending.append((producer, log, rows, producer.append(log, rows, at_ns)))
        elif fate == "part":
            producer.append(log, rows[: len(rows) // 2], at_ns) if len(rows) > 1 else None
            self._give_up(producer, rows)
        elif fate == "nowhere":
            self._give_up(producer, rows)
        else:
            producer.refuse(rows, self._later())

    def _forget(self, producer: Producer, log: Log, rows: list[Row], at_ns: int) -> None:
        """acks=0: no client waits, and some of the batches are lost."""
        if self.random.random() < 0.9:
            producer.append(log, rows, at_ns)
        producer.acknowledge(log, rows, self._later(), None)

    def _give_up(self, producer: Producer, rows: list[Row]) -> None:
        """The responses never arrive; the records stay unless an election truncates them."""
        producer.give_up(rows, self.now_ns + GIVES_UP_NS)
        if producer.transactional and producer.txn is not None:
            producer.end(self._later(), commit=False)

    def _settle_of(self, producer: Producer) -> None:
        self.pending.sort(key=lambda waiting: waiting[0] is producer)
        self._settle_one()

    def _settle_one(self) -> None:
        """A batch whose response was lost: sent again, or given up."""
        if not self.pending:
            return
        producer, log, rows, base = self.pending.pop()
        cut = rows[0]["value_id"] in log.cut
        if self.random.random() < 0.3 and not producer.transactional:
            self._give_up(producer, rows)
            return
        for row in rows:
            row |= {"attempts": 2, "ambiguous": True}
        known: int | None = base
        if cut or not producer.idempotent:
            sequence = producer.sequences[log.partition] - len(rows)
            again = sequence if producer.idempotent else None
            known = producer.append(log, rows, self._later(), again)
            log.cut -= {row["value_id"] for row in rows}
        elif self.random.random() < 0.3:
            known = None
        if producer.acks == -1:
            log.commit()
        producer.acknowledge(log, rows, self._later(), known)

    def _settle(self) -> None:
        while self.pending:
            self._settle_one()
        for producer in self.producers:
            self._end(producer, self._later())
        for log in self.logs:
            log.commit()

    def _end(self, producer: Producer, at_ns: int) -> None:
        if producer.txn is None:
            return
        while any(waiting[0] is producer for waiting in self.pending):
            self._settle_of(producer)
        if producer.txn is not None:
            producer.end(self._later(), commit=self.random.random() < 0.6)

    def _kill(self, producer: Producer, at_ns: int) -> None:
        pending = [waiting for waiting in self.pending if waiting[0] is producer]
        self.pending = [waiting for waiting in self.pending if waiting[0] is not producer]
        for _, _, rows, _ in pending:
            for row in rows:
                row |= {"complete_ns": None, "error": None}
        self.ids += 1
        producer.restart(at_ns, self._producer_id(self.ids))

    # -- the rest -------------------------------------------------------------------------------

    def _look_up(self, log: Log, at_ns: int) -> None:
        """ListOffsets of the leader: the end, or a time."""
        answer = log.place | {"node": log.leader, "invoke_ns": at_ns, "complete_ns": at_ns + MS}
        answer |= {"api_version": 7, "leader_epoch": log.epoch, "query": "latest"}
        answer["offset"] = log.high
        entries = [e for e in log.entries if log.start <= e.offset < log.high]
        if entries and self.random.random() < 0.6:
            asked_ms = self.random.choice(entries).timestamp_ms + self.random.randint(-2, 2)
            answered = next((e for e in entries if e.timestamp_ms >= asked_ms), None)
            answer |= {
                "query": f"time:{asked_ms}",
                "offset": -1 if answered is None else answered.offset,
            }
            answer["timestamp_ms"] = None if answered is None else answered.timestamp_ms
            answer["leader_epoch"] = -1 if answered is None else answered.epoch
        self.answers.append(answer)
        if log.start:
            self.answers.append(
                answer
                | {"query": f"before:{log.start}", "offset": log.start - 1, "timestamp_ms": None}
                | {"error": "OFFSET_OUT_OF_RANGE"}
            )

    def _delete(self, log: Log) -> None:
        """Retention moves the log's start over old batches, one after another."""
        if self.kind != "retained":
            return
        old_ns = self.now_ns - RETENTION_NS
        young = [e for e in log.entries if e.at_ns >= old_ns or e.offset >= log.high]
        log.start = max(log.start, young[0].batch if young else log.high)
        log.entries = [entry for entry in log.entries if entry.offset >= log.start]
