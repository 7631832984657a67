"""A correct partition: an append-only log with a committed end and clean elections. Its caller sets
the time.

It behaves as Apache Kafka does: acks=all waits for the high watermark, a new leader is in sync and
may lack uncommitted records, and retried batches of idempotent producers are recognised.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

Row = dict[str, Any]
MS = 1_000_000
S = 1_000 * MS
BEGIN_NS = 1_000 * S
CRASH_NS = BEGIN_NS + 15 * S
HEALED_NS = CRASH_NS + 8 * S
END_NS = BEGIN_NS + 30 * S
WALL_MS = 1_700_000_000_000
BROKERS = (1, 2, 3)


def wall_ms(at_ns: int) -> int:
    """The wall clock of everybody, in ms."""
    return WALL_MS + at_ns // MS


@dataclass(slots=True)
class Entry:
    """A record or a marker (`control`) in the log; `batch` is its batch's base offset."""

    offset: int
    batch: int
    epoch: int
    at_ns: int
    value_id: str | None
    key: str | None
    tombstone: bool = False
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    control: str | None = None
    transactional: bool = False
    timestamp_ms: int = 0


@dataclass(slots=True)
class Log:
    """The leader's log, its committed end, and the leaders with the begins of their terms."""

    random: Random
    topic_id: str
    topic: str
    partition: int
    entries: list[Entry] = field(default_factory=list)
    end: int = 0
    high: int = 0
    start: int = 0
    leader: int = 1
    epoch: int = 0
    isr: tuple[int, ...] = BROKERS
    alone_until_ns: int = 0
    version: int = -1
    states: list[Row] = field(default_factory=list)
    epochs: dict[int, int] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)

    @property
    def place(self) -> Row:
        return {"topic_id": self.topic_id, "topic": self.topic, "partition": self.partition}

    def advance(self, at_ns: int) -> None:
        """Write the state, as ZooKeeper has it."""
        self.version += 1
        path = f"/brokers/topics/{self.topic}/partitions/{self.partition}/state"
        self.states.append(
            self.place
            | {"at_ns": at_ns, "wall_ms": wall_ms(at_ns), "path": path, "version": self.version}
            | {"leader": self.leader, "leader_epoch": self.epoch, "controller_epoch": 1}
            | {"isr": str(list(self.isr)), "replicas": str(list(BROKERS))}
        )

    def append(self, batch: list[Row], at_ns: int) -> int:
        """Appends a batch and returns its base offset. Rows have the fields of an Entry."""
        base = self.end
        self.epochs.setdefault(self.epoch, base)
        for n, row in enumerate(batch):
            self.entries.append(
                Entry(offset=base + n, batch=base, epoch=self.epoch, at_ns=at_ns, **row)
            )
        self.end += len(batch)
        return base

    def skip(self, count: int) -> None:
        """Offsets that the cleaner has emptied, all of them older records."""
        self.end += count

    def commit(self) -> None:
        """All in-sync replicas have all; below the minimum of them nothing is committed."""
        if not self.alone:
            self.high = self.end

    @property
    def alone(self) -> bool:
        """Whether the leader is the whole ISR."""
        return len(self.isr) == 1

    def shrink(self, at_ns: int, until_ns: int) -> None:
        """The followers fall behind until then."""
        self.isr, self.alone_until_ns = (self.leader,), until_ns
        self.advance(at_ns)

    def elect(self, at_ns: int, leader: int, isr: tuple[int, ...]) -> list[Entry]:
        """Elects a member of the ISR; returns the records that it never had. Batches are truncated
        entirely, and committed ones never."""
        assert leader in self.isr
        bases = sorted({entry.batch for entry in self.entries if entry.offset >= self.high})
        kept = self.end if leader == self.leader else self.random.choice([*bases, self.end])
        lost = [entry for entry in self.entries if entry.offset >= kept]
        self.entries = [entry for entry in self.entries if entry.offset < kept]
        self.cut |= {entry.value_id for entry in lost if entry.value_id}
        self.end, self.high = kept, min(self.high, kept)
        self.leader, self.isr, self.epoch = leader, isr, self.epoch + 1
        self.epochs = {epoch: start for epoch, start in self.epochs.items() if start < kept}
        self.epochs[self.epoch] = kept
        self.advance(at_ns)
        return lost

    def shown(self, low: int, high: int, *, committed: bool = False) -> list[Entry]:
        """The records of [low, high) that a consumer receives; under read_committed without aborted
        ones."""
        aborted = self.aborted() if committed else set()
        return [
            entry
            for entry in self.entries
            if low <= entry.offset < high and entry.control is None
            if entry.offset not in aborted
        ]

    def aborted(self) -> set[int]:
        """Offsets of records whose producer's next marker is an abort."""
        producer_ids: set[int] = set()
        open_: dict[int, list[int]] = {}
        for entry in self.entries:
            if entry.control is None and entry.transactional:
                open_.setdefault(entry.producer_id, []).append(entry.offset)
            elif entry.control is not None:
                ended = open_.pop(entry.producer_id, [])
                producer_ids.update(ended if entry.control == "abort" else ())
        return producer_ids

    def stable(self) -> int:
        """The last stable offset: below it no transaction is open."""
        open_: dict[int, int] = {}
        for entry in self.entries:
            if entry.control is not None:
                open_.pop(entry.producer_id, None)
            elif entry.transactional:
                open_.setdefault(entry.producer_id, entry.offset)
        return min([self.high, *open_.values()])
