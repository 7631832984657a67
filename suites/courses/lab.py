"""A lab as data: the cluster that it needs, and its steps.

A step's line is what a learner types after `urteil tool`. In lines, standard input, files and
snippets `$bootstrap`, `$zookeeper`, `$folder` (a scratch folder), `$log1` (the log directory of
broker 1) and `$listener1` (the address to which broker 1 binds its listener for clients) have the
values of the cluster at hand.
"""

from __future__ import annotations

import msgspec

from urteil.harness.kafka_tools import NEW


class LabCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `urteil cluster up`. Labs with an equal one share it, in their order."""

    name: str
    brokers: int = 3
    racks: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    tls: bool = False
    acl: bool = False


LIKE_KAFKA = (
    ("default.replication.factor", "1"),
    ("min.insync.replicas", "1"),
    ("num.partitions", "3"),
    ("group.initial.rebalance.delay.ms", "300"),
    ("log.cleaner.backoff.ms", "300"),
    ("zookeeper.session.timeout.ms", "15000"),
)
"""Apache Kafka's defaults, `num.partitions` of the courses, short waits."""
THREE = LabCluster(name="three", settings=LIKE_KAFKA)


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One of Kafka's tools. `shows` are texts that its comparable output must contain. If the order
    of its lines means nothing, outputs are compared without it (`is_ordered`). `user` is the one of
    a cluster with users. With `until`, the tool runs until its output contains that. `both_racks`
    requires that every partition that it describes has replicas in both racks. `differs` is the
    reason for which outputs may differ."""

    line: str
    stdin: str = ""
    release: str = NEW
    user: str = ""
    exit_code: int = 0
    shows: tuple[str, ...] = ()
    is_ordered: bool = True
    until: bool = False
    count: int | None = None
    both_racks: bool = False
    differs: str = ""


class Begin(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that runs beside the following steps, under a name."""

    name: str
    line: str


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The end (SIGTERM) of the named tools, once they printed `count` lines together.

    Their lines are compared together, in any order; each must be there once.
    """

    names: tuple[str, ...]
    count: int


class Python(msgspec.Struct, frozen=True, kw_only=True):
    """A snippet of Python as the courses show it; `localhost:9092` is the cluster's address."""

    code: str
    shows: tuple[str, ...] = ()
    is_ordered: bool = True


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the learner writes into the scratch folder."""

    name: str
    text: str


class StopBroker(msgspec.Struct, frozen=True, kw_only=True):
    """SIGTERM for a broker."""

    broker: int


class StartBrokers(msgspec.Struct, frozen=True, kw_only=True):
    """Start of every stopped broker; it returns when the cluster is healthy."""


class Advertise(msgspec.Struct, frozen=True, kw_only=True):
    """Another address of a broker for its clients, in its property file, which it reads at its
    start."""

    broker: int
    address: str


Step = Tool | Begin | End | Python | File | StopBroker | StartBrokers | Advertise


class Lab(msgspec.Struct, frozen=True, kw_only=True):
    """A lab: its name, what it teaches, its cluster and its steps."""

    name: str
    about: str
    steps: tuple[Step, ...]
    cluster: LabCluster = THREE


def text_of(step: Step) -> str:
    """The step in one line, for messages and tables."""
    match step:
        case Tool(line=line, release=release):
            return line if release == NEW else f"{line} ({release})"
        case Begin(line=line):
            return f"{line} &"
        case End(names=names):
            return f"end of {', '.join(names)}"
        case Python(code=code):
            return f"python: {code.strip().splitlines()[-1]}"
        case File(name=name):
            return f"file {name}"
        case StopBroker(broker=broker):
            return f"stop of broker {broker}"
        case StartBrokers():
            return "start of all brokers"
        case Advertise(broker=broker, address=address):
            return f"advertised.listeners of broker {broker}: {address}"
