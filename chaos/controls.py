"""The operations of a cluster that chaos may call.

Faults and the nemesis depend on these protocols alone, so that they act alike on processes, on
containers and on external clusters. All calls block, are thread-safe and have deadlines of their
own. Nodes are named `b1`, `b2`, ... (brokers), `zk1`, ... (ZooKeeper servers), `q1`, ... (KRaft
controllers of their own) and `client` (the place of the workload's clients).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from urteil.chaos.admin_controls import AdminControls
from urteil.chaos.flushed_files import FlushedFiles
from urteil.chaos.link_controls import LinkControls
from urteil.chaos.observations import (
    ControllerTerm,
    Descriptors,
    Limits,
    NodeStatus,
    PartitionView,
)
from urteil.chaos.packet_controls import PacketControls
from urteil.chaos.quorum_controls import QuorumControls


class ContainerControls(Protocol):
    """Operations on nodes that run in containers."""

    def unplug(self, node: str) -> None:
        """Disconnect the node from the data network. Repeatable."""
        ...

    def plug(self, node: str) -> None:
        """Reconnect the node with the same address. Repeatable."""
        ...

    def limits(self, node: str) -> Limits: ...

    def limit(self, node: str, *, cpus: float | None, memory_mb: int | None) -> Limits:
        """Limit processors and memory of a running node; None keeps a limit."""
        ...

    def unlimit(self, node: str) -> Limits:
        """Remove all limits. Repeatable."""
        ...


class ZooKeeperAdmin(Protocol):
    """Operations in ZooKeeper. LabFailure if ZooKeeper does not respond."""

    def session(self, broker: str) -> int | None:
        """The session that holds the broker's registration; None if it is not registered."""
        ...

    def end_session(self, session: int) -> None:
        """Close a session of another client, with the effects of its expiry: ZooKeeper deletes its
        ephemeral znodes. The owner may resume it first: check `session` and repeat."""
        ...

    def controller_term(self) -> ControllerTerm | None:
        """The current term by `/controller`; None without a controller."""
        ...

    def delete_controller(self) -> None:
        """Delete `/controller`. Repeatable."""
        ...

    def request_reassignment(self, order: Mapping[tuple[str, int], Sequence[int]]) -> bool:
        """Request replicas by topic and partition, as broker ids with the preferred one first.
        False while an earlier request is not finished."""
        ...

    def request_election(self, slots: Iterable[tuple[str, int]]) -> bool:
        """Request preferred leaders. False while an earlier request is not processed."""
        ...


class CommandControls(Protocol):
    """Requests of the controller that the lab builds and sends. LabFailure if ZooKeeper or the
    broker does not respond."""

    def update_metadata_request(self, node: str) -> bytes:
        """An UpdateMetadata with the complete current metadata, as the controller would send it to
        the broker with its present broker epoch."""
        ...

    def stop_replica_request(self, node: str) -> bytes:
        """The StopReplica that a controlled shutdown sends for replicated partitions, likewise."""
        ...

    def send(self, node: str, command: bytes) -> str:
        """Send the request to the broker. Returns the name of the error, empty for none."""
        ...


class ClockControls(Protocol):
    """Wall clocks of brokers and controllers with clocks of their own."""

    def set_offset(self, node: str, *, offset_s: float) -> None:
        """Set the clock ahead of true time (behind: negative). The node follows within two
        seconds."""
        ...

    def clock_offset_s(self, node: str) -> float:
        """The lead of the node's clock over the lab's: a broker's by its LogAppendTime, a
        controller's by the time of its stack dump."""
        ...

    def precision_s(self, node: str) -> float:
        """How far the true lead may be from the one that `clock_offset_s` returns."""
        ...


class DiskControls(Protocol):
    """The brokers' disks. LabFailure if the runtime does not support an operation."""

    def open_log_directories(self, node: str) -> AbstractContextManager[Sequence[Path]]:
        """A context with the log directories of a broker as folders of this machine.

        Changes in the block reach the broker at its end. For a container engine on another machine
        the folders are copies: the broker must not run, and nothing can be removed.
        """
        ...

    def flushed_files(self, node: str) -> FlushedFiles | None:
        """The data that the broker's processes have flushed; None if flushes are not recorded
        (`ClusterSpec.records_flushes`)."""
        ...

    def limit_file_size(self, node: str, size_bytes: int | None) -> int | None:
        """Limit the size of the broker's files; None removes the limit.

        Returns the limit that the kernel reports.
        """
        ...

    def make_read_only(self, node: str) -> Sequence[str]:
        """Make the log directories read-only for the broker until its process ends. Returns the
        mount options that the kernel reports."""
        ...

    def delay_writes(self, node: str, delay_ms: int) -> None:
        """Delay each write and sync of logs and checkpoints."""
        ...

    def delayed_writes(self, node: str) -> int | None:
        """The number of delayed writes so far; None if writes are not delayed."""
        ...

    def stop_delaying_writes(self, node: str) -> int:
        """End the delay. Returns the number of delayed writes. Repeatable, then 0."""
        ...


class ClientControls(Protocol):
    """The clients of a run by name. The next session of a killed client has another name: `p1.2`
    follows `p1`."""

    def names(self, kind: str) -> Sequence[str]:
        """The clients of a kind that were started and did not end."""
        ...

    def names_of_role(self, role: str) -> Sequence[str]:
        """The processes of the application with this role that were started and did not end."""
        ...

    def application_leader(self) -> str | None:
        """The process that leads the application's group; None if none is known to."""
        ...

    def empty_stores(self, name: str) -> Sequence[str]:
        """Remove the stores of a dead process of the application. Returns the removed files."""
        ...

    def operate_application(self, act: str) -> str:
        """Perform an act of the application's operator; returns the application's confirmation.
        Recorded as an act of the lab. LabFailure for an act that the application does not have."""
        ...

    def status(self, name: str) -> NodeStatus: ...

    def kill(self, name: str) -> NodeStatus:
        """SIGKILL; returns when the process is gone. Recorded as an act of the lab."""
        ...

    def start_next_session(self, name: str) -> str:
        """Start the next session of a killed client. Returns its name. Repeatable."""
        ...

    def pause(self, name: str) -> NodeStatus: ...

    def resume(self, name: str) -> NodeStatus: ...

    def pause_polling(self, name: str) -> None:
        """Stop a group member between two polls; it continues to heartbeat."""
        ...

    def resume_polling(self, name: str) -> None:
        """Resume the polling of a member."""
        ...

    def join(self) -> str:
        """Start a group member. Returns its name."""
        ...

    def leave(self, name: str, *, deadline_s: float = 10.0) -> None:
        """Make a group member leave its group and end."""
        ...

    def journal_bytes(self, name: str) -> int:
        """The size of the client's journal, which grows while the client works."""
        ...

    def assignments(self, name: str) -> int:
        """The number of assignments that the member has received."""
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
    def voters(self) -> Sequence[str]:
        """Names of the controllers that are voters of KRaft's quorum now, alive or not; none with
        ZooKeeper."""
        ...

    @property
    def metadata_nodes(self) -> Sequence[str]:
        """Names of all nodes that are not brokers: ZooKeeper servers, or controllers of their
        own."""
        ...

    @property
    def nodes(self) -> Sequence[str]:
        """Names of all nodes: metadata nodes, then brokers."""
        ...

    @property
    def net(self) -> LinkControls: ...

    @property
    def containers(self) -> ContainerControls:
        """LabFailure if nodes do not run in containers."""
        ...

    @property
    def packets(self) -> PacketControls:
        """LabFailure if nodes do not run on hosts of an inventory."""
        ...

    @property
    def zookeeper_admin(self) -> ZooKeeperAdmin: ...

    @property
    def commands(self) -> CommandControls: ...

    @property
    def clocks(self) -> ClockControls:
        """LabFailure if brokers have no clocks of their own."""
        ...

    @property
    def disks(self) -> DiskControls:
        """LabFailure if this machine cannot reach the brokers' disks."""
        ...

    @property
    def admin(self) -> AdminControls:
        """Administrative operations."""
        ...

    @property
    def quorum(self) -> QuorumControls:
        """LabFailure if the cluster has no dynamic quorum."""
        ...

    @property
    def clients(self) -> ClientControls:
        """LabFailure if the lab runs no clients."""
        ...

    def status(self, node: str) -> NodeStatus: ...

    def kill(self, node: str) -> NodeStatus:
        """SIGKILL; returns when the process is gone."""
        ...

    def stop(self, node: str, *, deadline_s: float = 30.0) -> NodeStatus:
        """SIGTERM and wait; SIGKILL after the deadline (then `exit_code` is -9)."""
        ...

    def start(self, node: str, *, deadline_s: float = 60.0) -> NodeStatus:
        """Start a dead node and wait until it serves (a broker: until it is registered).

        Waits first until the target may start (Apache Kafka: until its old znode is gone).
        NotHealthy if the deadline passes or the process ends. Does nothing for a running node.
        """
        ...

    def pause(self, node: str) -> NodeStatus:
        """SIGSTOP; returns when every thread of the process is stopped."""
        ...

    def resume(self, node: str) -> NodeStatus:
        """SIGCONT."""
        ...

    def allow_exit(self, node: str, *, allowed: bool = True) -> None:
        """Let the node exit without a failure of the lab, because a fault may cause it.

        Holds until the next `start`, or until a call with `allowed=False`.
        """
        ...

    def throttle_cpu(self, node: str, cpus: float) -> Limits:
        """Limit a node to a number of processors; the result and `cpu_throttling` count the effect.
        A process is stopped for most of each period; a container is limited by its control
        group."""
        ...

    def restore_cpu(self, node: str) -> Limits:
        """Remove the limit. Repeatable."""
        ...

    def cpu_throttling(self, node: str) -> Limits: ...

    def descriptors(self, node: str) -> Descriptors: ...

    def limit_descriptors(self, node: str, most: int) -> Descriptors:
        """Set the limit of open files of a running node to `most`."""
        ...

    def hold(self, fault: str, *, expiry_s: float) -> int:
        """Announce a fault before it begins, with the time after which it must be undone. Beside a
        cluster that outlives the lab, a process heals everything when a hold expires or the lab
        dies. `release` needs the returned number."""
        ...

    def release(self, hold: int) -> None:
        """Announce that the fault is healed."""
        ...

    def zookeeper_leader(self) -> str | None:
        """The ZooKeeper server that is leader or standalone; None without one."""
        ...

    def controller(self) -> str | None:
        """The broker that holds `/controller`, or the leader of KRaft's quorum."""
        ...

    def registered_brokers(self) -> Sequence[str]:
        """The brokers in `/brokers/ids`; in KRaft those that are not fenced."""
        ...

    def topics(self) -> Sequence[str]:
        """All topics in ZooKeeper, internal ones too."""
        ...

    def partitions(self, topic: str) -> Sequence[PartitionView]:
        """All partitions of a topic in order; empty if the topic does not exist."""
        ...

    def partition(self, topic: str, partition: int) -> PartitionView | None: ...

    def named_leaders(self, broker: str) -> Mapping[tuple[str, int], int]:
        """Topic and partition to the id of the leader that a broker returns to clients; -1 without
        a leader. LabFailure without an answer."""
        ...

    def await_healthy(self, *, deadline_s: float) -> float:
        """Wait until every broker is registered, one is controller, and every partition has a
        leader and a full ISR. Starts and resumes no node. Returns the seconds waited; NotHealthy on
        the deadline.
        """
        ...

    def check(self) -> None:
        """LabFailure if a process died that no fault may have ended (a Toxiproxy, or a node that
        exited by itself)."""
        ...
