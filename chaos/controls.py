"""What chaos may do to a cluster and ask of it.

Faults and the nemesis are written against these protocols alone, so that they act the same on
processes, containers and clusters that somebody else keeps. All calls block, may be made from any
thread, and carry deadlines of their own. Nodes are named `b1`, `b2`, ... (brokers), `zk1`, ...
(ZooKeeper) and `client` (where the workload's clients sit).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from urteil.chaos.admin_controls import AdminControls
from urteil.chaos.observations import (
    DOWNSTREAM,
    UPSTREAM,
    ControllerTerm,
    Descriptors,
    Limits,
    Link,
    NodeStatus,
    PartitionView,
    Probe,
    Transfer,
)


class LinkControls(Protocol):
    """The network between the nodes. A one-way partition cuts `src->dst` and leaves `dst->src`."""

    def links(self) -> Sequence[Link]:
        """Every directed link there is, in a fixed order."""
        ...

    def links_between(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Link]:
        """Every link from a node of `left` to one of `right` and back (a two-way partition)."""
        ...

    def links_of(self, node: str, *, clients: bool = True) -> Sequence[Link]:
        """Every link from and to `node`; without `clients`, those of the workload are left out."""
        ...

    def cut(self, links: Sequence[Link], *, answers_only: bool = False, owner: str = "") -> None:
        """Stall the links: bytes stop both ways, connections stay and go on after healing.

        With `answers_only` requests still arrive, and are served for nobody. `owner` names the
        injection, here and below: several may be at work on one link.
        """
        ...

    def close(self, links: Sequence[Link], *, owner: str = "") -> None:
        """Break the links: connections are closed and new ones refused until healing."""
        ...

    def latency(
        self, links: Sequence[Link], *, latency_ms: int, jitter_ms: int = 0, owner: str = ""
    ) -> None:
        """Delay what `src` sends to `dst` over each link by `latency_ms` +- `jitter_ms`."""
        ...

    def add_toxic(
        self,
        links: Sequence[Link],
        kind: str,
        attributes: Mapping[str, int],
        *,
        streams: Sequence[str] = (DOWNSTREAM, UPSTREAM),
        owner: str = "",
    ) -> None:
        """Put one of Toxiproxy's toxics on requests (UPSTREAM), answers (DOWNSTREAM) or both."""
        ...

    def measure_transfer(
        self,
        link: Link,
        *,
        questions: int = 1,
        question_bytes: int = 0,
        dst_closes: bool = False,
        timeout_s: float = 5.0,
    ) -> Transfer:
        """Ask `dst` so many questions over one connection, and count what comes back.

        `dst_closes` ends it by a frame that may not be, upon which `dst` closes; else this side
        does. How long the end takes to arrive is `closing_ms`.

        All at once; with `question_bytes` so large ones, each when the one before was answered. A
        ZooKeeper server is asked one question whose answer is longer.
        """
        ...

    def heal(self, links: Sequence[Link], *, owner: str | None = None) -> None:
        """Take every fault of `owner` off these links; without one, everybody's."""
        ...

    def active(self) -> Mapping[Link, tuple[str, ...]]:
        """Links under a fault now, with what was done to them: `closed`, or names of toxics, those
        of a cut beginning with `cut_`."""
        ...

    def heal_all(self) -> None:
        """Take every fault off every link and probe every proxy; repeatable.

        A Toxiproxy that hangs is restarted with its proxies. LabFailure when a link stays broken
        although the node behind it answers.
        """
        ...

    def probe(self, link: Link, *, timeout_s: float = 1.0) -> Probe:
        """Ask `dst` a question through the link: the proof that a cut or a delay acts, or not."""
        ...

    def check(self) -> None:
        """LabFailure when a Toxiproxy of the lab died or does not answer."""
        ...


class ContainerControls(Protocol):
    """What can be done to nodes in containers alone."""

    def unplug(self, node: str) -> None:
        """Take the network by which nodes reach each other; repeatable."""
        ...

    def plug(self, node: str) -> None:
        """Give it back, with the same address; repeatable."""
        ...

    def limits(self, node: str) -> Limits: ...

    def limit(self, node: str, *, cpus: float | None, memory_mb: int | None) -> Limits:
        """Limit processors and memory while it runs; None leaves one as it is."""
        ...

    def unlimit(self, node: str) -> Limits:
        """Take all limits off; repeatable."""
        ...


class ZooKeeperAdmin(Protocol):
    """What can be done in ZooKeeper itself. LabFailure where it does not answer."""

    def session(self, broker: str) -> int | None:
        """The session that holds the broker's registration; None when it is not registered."""
        ...

    def end_session(self, session: int) -> None:
        """Close another's session, as its expiry would: its ephemeral nodes go, its owner is told
        that it expired. The owner may take it back before: ask `session`, and repeat."""
        ...

    def controller_term(self) -> ControllerTerm | None:
        """Who controls, by `/controller`; None when nobody does."""
        ...

    def delete_controller(self) -> None:
        """Delete `/controller` by hand; repeatable."""
        ...


class CommandControls(Protocol):
    """The controller's requests to brokers, as the lab sends them. LabFailure where ZooKeeper or
    the broker does not answer."""

    def metadata(self, node: str) -> bytes:
        """UpdateMetadata with all that there is now, as the present controller would send it to
        this life of a broker."""
        ...

    def stop(self, node: str) -> bytes:
        """StopReplica for what the broker shares with others, which it is told of when it shuts
        down; likewise."""
        ...

    def send(self, node: str, command: bytes) -> str:
        """Say it to the broker; the error it answers, empty for none."""
        ...


class ClockControls(Protocol):
    """Wall clocks of brokers that have their own."""

    def set_offset(self, node: str, *, offset_s: float) -> None:
        """Let it be so far ahead of the truth (behind: negative). The broker follows within a
        second or two."""
        ...

    def clock_offset_s(self, node: str) -> float:
        """How far the time that the broker stamps on a record is ahead of the lab's."""
        ...


class DiskControls(Protocol):
    """The brokers' disks. LabFailure where the runtime cannot do what is asked."""

    def open_log_directories(self, node: str) -> AbstractContextManager[Sequence[Path]]:
        """The log directories of a broker as folders of this machine.

        What the block changes in them is changed for the broker at its end. In containers of an
        engine elsewhere they are copies: of a broker that runs there are none, and neither files
        nor folders can be taken away.
        """
        ...

    def limit_file_size(self, node: str, size_bytes: int | None) -> int | None:
        """From now on the broker can make no file larger than that; None takes the limit away.

        Answers the limit as the operating system tells it.
        """
        ...

    def make_read_only(self, node: str) -> Sequence[str]:
        """Make the log directories read-only for the broker, until its process ends; how the
        operating system tells of them then."""
        ...

    def delay_writes(self, node: str, delay_ms: int) -> None:
        """From now on each write and sync of a log or checkpoint takes so much longer."""
        ...

    def delayed_writes(self, node: str) -> int | None:
        """How many were held back by now; None where none are."""
        ...

    def stop_delaying_writes(self, node: str) -> int:
        """No more; how many were held back in all. Repeatable, then 0."""
        ...


class ClientControls(Protocol):
    """The clients of a run, by name. A killed one is followed by another session of its own name:
    `p1` by `p1.2`."""

    def names(self, kind: str) -> Sequence[str]:
        """Clients of a kind that were started and did not end: producer, consumer or group."""
        ...

    def status(self, name: str) -> NodeStatus: ...

    def kill(self, name: str) -> NodeStatus:
        """SIGKILL; returns when the process is gone. Written down as an act of the lab."""
        ...

    def start_next_session(self, name: str) -> str:
        """Start the next session of a client that was killed; its name. Repeatable."""
        ...

    def pause(self, name: str) -> NodeStatus: ...

    def resume(self, name: str) -> NodeStatus: ...

    def pause_polling(self, name: str) -> None:
        """Let a group member stand still between two polls while it goes on to heartbeat."""
        ...

    def resume_polling(self, name: str) -> None:
        """Let it poll again."""
        ...

    def join(self) -> str:
        """Start one more group member; its name."""
        ...

    def leave(self, name: str, *, deadline_s: float = 10.0) -> None:
        """Let a group member leave in order and end."""
        ...

    def journal_bytes(self, name: str) -> int:
        """How much it wrote so far: a client that writes nothing got nowhere."""
        ...

    def assignments(self, name: str) -> int:
        """How often it was given partitions so far."""
        ...


class Controls(Protocol):
    """A cluster's nodes and its state."""

    @property
    def brokers(self) -> Sequence[str]:
        """Names of all brokers, alive or not."""
        ...

    @property
    def zookeepers(self) -> Sequence[str]:
        """Names of all ZooKeeper servers, alive or not."""
        ...

    @property
    def net(self) -> LinkControls: ...

    @property
    def containers(self) -> ContainerControls:
        """LabFailure when nodes are no containers."""
        ...

    @property
    def zookeeper_admin(self) -> ZooKeeperAdmin: ...

    @property
    def commands(self) -> CommandControls: ...

    @property
    def clocks(self) -> ClockControls:
        """LabFailure when the brokers have no clocks of their own."""
        ...

    @property
    def disks(self) -> DiskControls:
        """LabFailure when nobody here reaches the brokers' disks."""
        ...

    @property
    def admin(self) -> AdminControls:
        """What an administrator may ask of the cluster."""
        ...

    @property
    def clients(self) -> ClientControls:
        """LabFailure when no clients of the lab's own are at work."""
        ...

    def status(self, node: str) -> NodeStatus: ...

    def kill(self, node: str) -> NodeStatus:
        """SIGKILL; returns when the process is gone."""
        ...

    def stop(self, node: str, *, deadline_s: float = 30.0) -> NodeStatus:
        """SIGTERM and wait; SIGKILL after the deadline (then `exit_code` is -9)."""
        ...

    def start(self, node: str, *, deadline_s: float = 60.0) -> NodeStatus:
        """Start a dead node and wait until it serves (a broker: registered in ZooKeeper).

        Waits first for what the target needs gone (Apache Kafka: its own znode). NotHealthy when
        the deadline passes or the process ends. Nothing happens to a node that runs.
        """
        ...

    def pause(self, node: str) -> NodeStatus:
        """SIGSTOP; returns when every thread of the process is stopped."""
        ...

    def resume(self, node: str) -> NodeStatus:
        """SIGCONT."""
        ...

    def allow_exit(self, node: str, *, allowed: bool = True) -> None:
        """From now on the node may end by itself: that is a fault's doing, no failure of the lab.

        Until its next `start`, or until it is no longer `allowed`.
        """
        ...

    def throttle_cpu(self, node: str, cpus: float) -> Limits:
        """Leave a node so many processors; counted in what it answers, and by `cpu_throttling`.

        A process is stopped for most of every period, a container limited by its control group.
        """
        ...

    def restore_cpu(self, node: str) -> Limits:
        """Give it all it wants again; repeatable."""
        ...

    def cpu_throttling(self, node: str) -> Limits: ...

    def descriptors(self, node: str) -> Descriptors: ...

    def limit_descriptors(self, node: str, most: int) -> Descriptors:
        """Let a running node open no file nor socket whose number is `most` or more."""
        ...

    def hold(self, fault: str, *, expiry_s: float) -> int:
        """Say that a fault is about to begin, and when it must be gone at the latest.

        Where the cluster outlives the lab, something beside it heals everything when a hold is
        older than that, or when the lab dies. The answer is for `release`.
        """
        ...

    def release(self, hold: int) -> None:
        """Say that it was healed."""
        ...

    def zookeeper_leader(self) -> str | None:
        """The ZooKeeper server that leads the ensemble, or stands alone; None without one."""
        ...

    def controller(self) -> str | None:
        """The broker that holds `/controller`."""
        ...

    def registered(self) -> Sequence[str]:
        """Brokers present in `/brokers/ids`."""
        ...

    def topics(self) -> Sequence[str]:
        """Topics of ZooKeeper, internal ones too."""
        ...

    def partitions(self, topic: str) -> Sequence[PartitionView]:
        """All partitions of a topic in order; empty when there is no such topic."""
        ...

    def partition(self, topic: str, partition: int) -> PartitionView | None: ...

    def await_healthy(self, *, deadline_s: float) -> float:
        """Wait until every broker is registered, one is controller, and every partition is led
        with a full ISR; resumes and starts nothing. Seconds waited; NotHealthy on the deadline.
        """
        ...

    def check(self) -> None:
        """LabFailure when a part of the lab that no fault may touch died (Toxiproxy, or a
        ZooKeeper or broker that died by itself)."""
        ...
