"""The cluster's state in its metadata plane, read past all proxies."""

from __future__ import annotations

from typing import Any, Protocol

from kazoo.client import KazooClient

from urteil.chaos.observations import PartitionView


class ClusterState(Protocol):
    """ZooKeeper's (`zookeeper_state`) or KRaft's (`quorum_state`, and `answered_state` for external
    clusters). Every method raises LabFailure
    when the plane cannot be read.

    `lacks` names the capabilities that the brokers do not have, once they are known.
    """

    lacks: frozenset[str]

    @property
    def client(self) -> KazooClient:
        """The lab's own ZooKeeper session; LabFailure without ZooKeeper."""
        ...

    def start(self, *, deadline_s: float) -> None: ...

    def close(self) -> None: ...

    def registered_brokers(self) -> dict[str, int | None]:
        """The present brokers, each with the number of its registration; None if the plane does not
        expose it."""
        ...

    def controller(self) -> str | None: ...

    def voters(self) -> dict[str, str]:
        """The voters of KRaft's dynamic quorum, each with the id of its log directory; none for a
        static quorum, or if the plane does not expose them."""
        ...

    def controller_epoch(self) -> int:
        """The epoch of the controller; 0 before the first."""
        ...

    def registrations(self) -> dict[str, dict[str, Any]]:
        """Each present broker's registration, in the form of ZooKeeper's JSON."""
        ...

    def cluster_id(self) -> str: ...

    def topics(self) -> list[str]: ...

    def topic_id(self, topic: str) -> str | None: ...

    def partitions(self, topic: str) -> list[PartitionView]:
        """All partitions of a topic in order; empty when there is no such topic."""
        ...

    def topic_config(self, topic: str) -> dict[str, str]: ...

    def broker_defaults(self) -> dict[str, str]:
        """The settings that are set for all brokers while they run."""
        ...

    def client_quotas(self, client: str | None) -> dict[str, str]: ...

    def is_reassigning(self, topic: str) -> bool: ...

    def is_being_deleted(self, topic: str) -> bool: ...

    def is_deleted(self, topic: str) -> bool: ...
