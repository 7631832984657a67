"""What a cluster under chaos is seen as: nodes, links, partitions, and failures of the lab."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

CLIENT = "client"
DOWNSTREAM, UPSTREAM = "downstream", "upstream"
"""Toxiproxy's streams of a connection: the answers, and the requests."""


class LabFailure(Exception):
    """The lab itself failed (a Toxiproxy died, healing failed): the run is UNKNOWN, never PASS."""


class NotHealthy(Exception):
    """The cluster did not come back before its deadline; the message says what was missing."""


class NodeState(Enum):
    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """One node's process as the operating system sees it. `exit_code` as in subprocess (-9)."""

    node: str
    state: NodeState
    pid: int | None
    exit_code: int | None = None
    starts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A broker that ended by itself, as it ran or while it was `starting`; `starts` says in which
    of its lives."""

    node: str
    starts: int
    at_ns: int
    exit_code: int
    starting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """A partition's state as ZooKeeper holds it; nodes by name, `leader` None without one."""

    topic: str
    partition: int
    leader: str | None
    leader_epoch: int
    isr: tuple[str, ...]
    replicas: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """A directed link: requests from `src` to `dst`, and the answers to them."""

    src: str
    dst: str

    def __str__(self) -> str:
        return f"{self.src}->{self.dst}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a node's control group allows it and counted; None is no limit.

    `throttled` is how many of its scheduling periods ended early so far, out of `periods`.
    """

    node: str
    cpus: float | None
    memory_mb: int | None
    throttled: int = 0
    periods: int = 0

    def __str__(self) -> str:
        cpus = "all processors" if self.cpus is None else f"{self.cpus:g} processors"
        memory = "all memory" if self.memory_mb is None else f"{self.memory_mb} MB"
        return f"{cpus}, {memory}, throttled in {self.throttled} of {self.periods} periods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors:
    """A node's file descriptors: a new one gets `lowest_free`, which must be below `limit`."""

    node: str
    open: int
    lowest_free: int
    limit: int

    def __str__(self) -> str:
        return f"{self.open} descriptors open, limit {self.limit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question sent through a link's proxy. `rtt_ms` is None when no answer came in time."""

    link: Link
    answered: bool
    rtt_ms: float | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What one connection through a link carried, and how it ended.

    `ended` is answered (every question was), closed, reset, timed out or refused; `seconds` passed
    until the last piece; `closing_ms` from the end of one side to that of the other.
    """

    link: Link
    ended: str
    received_bytes: int
    answers: int
    pieces: int
    largest_piece_bytes: int
    seconds: float
    closing_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerTerm:
    """One term of a controller: who, and the transaction that made its `/controller`."""

    broker: str
    zxid: int

    def __str__(self) -> str:
        return f"{self.broker} since zxid {self.zxid:#x}"
