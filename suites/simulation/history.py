"""What clients saw: a row for every call of theirs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from urteil.suites.simulation.cluster import EPOCH_MS

NO_OFFSET = -1


@dataclass(slots=True)
class Send:
    """One batch and what came of it: `ok`, `fail` (certainly not), `info` (unknown)."""

    client: str
    topic: str
    partition: int
    values: tuple[str, ...]
    begin_s: float
    end_s: float = -1.0
    outcome: str = "info"
    offset: int = -1
    node: int = -1
    producer_id: int = -1
    sequence: int = -1
    error: str = ""
    rejected_by: int = -1
    """The broker that answered the last error."""
    attempts: int = 0
    out_of_order_s: float = -1.0
    """When it was first rejected as out of order. From then on it waits for its predecessor."""
    session: int = 0
    txn: int | None = None
    keys: tuple[str, ...] = ()
    """Of each record; none in topics that are not compacted."""
    tombstones: frozenset[str] = frozenset()
    """The values that are headers of records without a value."""


class RejectedRepetition(NamedTuple):
    """A repetition of an acknowledged batch, one of the five newest of its producer, that a broker
    rejected as out of order."""

    send: Send
    node: int
    invoke_s: float
    complete_s: float


@dataclass(slots=True)
class Txn:
    """One transaction: `committed`, `aborted`, `fenced` before its commit, or `unknown`."""

    client: str
    session: int
    number: int
    transactional_id: str
    producer_id: int
    epoch: int
    begin_s: float
    init_invoke_s: float
    init_s: float
    commit_s: float = -1.0
    end_s: float = -1.0
    outcome: str = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """A leader's answer to ListOffsets: where a partition ends (`latest` for readers of all
    records, `stable` for those of committed ones), where it starts (`earliest`), the first record
    that is not older than `asked_ms` (`time`), or the one of the largest timestamp (`max`). The
    offset is -1 with an error, and where there is no such record. `before` is the answer to a fetch
    of the offset before the start that the leader returned in that epoch."""

    client: str
    topic: str
    partition: int
    query: str
    offset: int
    node: int
    invoke_s: float
    complete_s: float
    leader_epoch: int = -1
    error: str | None = None
    asked_ms: int | None = None
    found_ms: int | None = None


class Poll(NamedTuple):
    """A fetch of a reader. The event `reset` is a lookup that moved the reader to the start of the
    log."""

    client: str
    number: int
    topic: str
    partition: int
    position_before: int
    position_after: int
    node: int
    invoke_s: float
    complete_s: float
    error: str | None = None
    event: str | None = None


class EpochEnd(NamedTuple):
    """A leader's answer to OffsetForLeaderEpoch after the recovery: the end offset of `epoch`."""

    broker: int
    topic: str
    partition: int
    epoch: int
    end: int
    at_s: float


class View(NamedTuple):
    """The answer of one broker to Metadata about a partition."""

    broker: int
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    isr_size: int
    at_s: float


class Beat(NamedTuple):
    """A heartbeat of a member and the coordinator's answer."""

    client: str
    member_id: str
    generation: int
    node: int
    invoke_s: float
    complete_s: float
    error: str


class Assignment(NamedTuple):
    """A partition that a member got (`assigned`), or that the leader gave a member (`given`); one
    of an assignment that the coordinator returned once more as it was (`kept`), or otherwise
    (`forgotten`)."""

    client: str
    generation: int
    member_id: str
    event: str
    topic: str
    partition: int
    at_s: float


class Departure(NamedTuple):
    """A member that left its group or died, with the partitions that it had; others have to have
    them by `limit_s`."""

    client: str
    has_died: bool
    partitions: tuple[int, ...]
    at_s: float
    limit_s: float


class StaticReturn(NamedTuple):
    """A static member that died and returned within its session: generations before and after."""

    client: str
    died_s: float
    back_s: float
    before: int
    after: int


class Commit(NamedTuple):
    """A commit of one partition and what came of it."""

    client: str
    generation: int
    member_id: str
    topic: str
    partition: int
    offset: int
    invoke_s: float
    complete_s: float
    outcome: str
    error: str | None


class CommitRead(NamedTuple):
    """A committed offset as a broker answered it; -1 for none."""

    client: str
    topic: str
    partition: int
    offset: int
    node: int
    invoke_s: float
    complete_s: float


class ExpectedOffset(NamedTuple):
    """The offset that a group without members has from `since_s` on. `deleted_by` is the broker
    that accepted its deletion, which was requested at `invoke_s`; -1 if it was not deleted."""

    group: str
    offset: int
    since_s: float
    deleted_by: int = -1
    invoke_s: float = -1.0


class OffsetRead(NamedTuple):
    """The committed offset of a group without members, as a coordinator returned it."""

    expected: ExpectedOffset
    offset: int
    leader_epoch: int
    node: int
    invoke_s: float
    complete_s: float


class Deletion(NamedTuple):
    """An accepted DeleteRecords and the low watermark of its answer."""

    topic: str
    partition: int
    low_watermark: int
    begin_s: float
    end_s: float


@dataclass(slots=True)
class TxnCommit:
    """An offset that a transaction committed for a group."""

    client: str
    group: str
    txn: Txn
    offset: int
    begin_s: float
    is_accepted: bool = False


class StableRead(NamedTuple):
    """A stable offset of a copier's group, as a coordinator returned it; -1 for none. `within` is
    the open transaction that had committed an offset of the group; None if there was none."""

    client: str
    group: str
    within: int | None
    offset: int
    node: int
    invoke_s: float
    complete_s: float


class Act(NamedTuple):
    """A request of an administrator and what came of it: `create`, `grow`, `configure`, `delete`,
    `move`, `cancel` or `elect`; `asked` is a count, a value or replicas."""

    client: str
    kind: str
    topic: str
    partition: int | None
    asked: Any
    begin_s: float
    end_s: float
    outcome: str


class Questioned(NamedTuple):
    """A question with a known answer at its end: `right`, or `wrong` with an error. `node` is the
    broker that answered; -1 for none."""

    client: str
    invoke_ns: int
    complete_ns: int
    node: int
    subject: str
    outcome: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Read:
    """One record as a reader got it."""

    client: str
    topic: str
    partition: int
    offset: int
    value: str
    leader_epoch: int
    at_s: float
    key: str | None = None
    timestamp_ms: int | None = None
    poll: int = 0
    """The number of its poll among those of the reader."""
    position: int = 0
    """Its position in the poll."""


@dataclass(slots=True)
class History:
    """What the clients saw."""

    sends: list[Send] = field(default_factory=list)
    rejected_repetitions: list[RejectedRepetition] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    txns: list[Txn] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    epoch_ends: list[EpochEnd] = field(default_factory=list)
    producer_ends_s: dict[str, float] = field(default_factory=dict)
    """When every batch of a producer had an outcome."""
    readers_of_committed: list[str] = field(default_factory=list)
    instances: dict[str, str] = field(default_factory=dict)
    """Client to its `group.instance.id`."""
    assignments: list[Assignment] = field(default_factory=list)
    beats: list[Beat] = field(default_factory=list)
    departures: list[Departure] = field(default_factory=list)
    returns: list[StaticReturn] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    commit_reads: list[CommitRead] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    questioned: list[Questioned] = field(default_factory=list)
    offset_reads: list[OffsetRead] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)
    deleted_places: set[tuple[str, int]] = field(default_factory=set)
    """The partitions of which records were deleted, or may have been."""
    txn_commits: list[TxnCommit] = field(default_factory=list)
    stable_reads: list[StableRead] = field(default_factory=list)


def sent_ms(send: Send) -> int:
    """The timestamp of its records."""
    return EPOCH_MS + int(send.begin_s * 1000)
