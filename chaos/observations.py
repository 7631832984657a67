"""States and measurements of a cluster, and the lab's failures."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

CLIENT = "client"
WAN = "wan"
"""The place of applications at the other cluster of a run, which reach this one over long links."""
DOWNSTREAM, UPSTREAM = "downstream", "upstream"
"""The streams of a connection in Toxiproxy: responses and requests."""


class LabFailure(Exception):
    """The lab failed (a Toxiproxy died, healing failed): the run is UNKNOWN, never PASS."""


class UnreadableLink(LabFailure):
    """A rule was to act on a link whose frames cannot be read. The message has the reason."""


class NotHealthy(Exception):
    """The cluster did not recover before its deadline; the message names what is missing."""


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
    """A broker or controller that exited by itself, while it ran or was `starting`; `starts` counts
    its starts until then."""

    node: str
    starts: int
    at_ns: int
    exit_code: int
    starting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """A partition's state in ZooKeeper. Nodes by name; `leader` is None without a leader."""

    topic: str
    partition: int
    leader: str | None
    leader_epoch: int
    isr: tuple[str, ...]
    replicas: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """A directed link: requests from `src` to `dst`, and their responses."""

    src: str
    dst: str

    def __str__(self) -> str:
        return f"{self.src}->{self.dst}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a node's control group and its counters; None is no limit.

    In `throttled` of `periods` scheduling periods the node was throttled.
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
    """A node's file descriptors. The next one gets the number `lowest_free`, if below `limit`."""

    node: str
    open: int
    lowest_free: int
    limit: int

    def __str__(self) -> str:
        return f"{self.open} descriptors open, limit {self.limit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One request through a link's proxy. `rtt_ms` is None without a response in time."""

    link: Link
    answered: bool
    rtt_ms: float | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Measurement of one connection through a link.

    `ended` is answered (every request was), closed, reset, timed out or refused. `seconds` is the
    time until the last piece, `closing_ms` the time from one side's close to the other side's.
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
    """One term of a controller: the broker, and the transaction that created `/controller`."""

    broker: str
    zxid: int

    def __str__(self) -> str:
        return f"{self.broker} since zxid {self.zxid:#x}"
