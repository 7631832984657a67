"""Administrative operations that faults need: declared here, implemented by the harness.

Each call is one request, or one request and the wait for its end, with a deadline of its own. It
raises `ActFailed` if the cluster rejects the operation or does not finish it. For their proof,
callers read the state of the cluster. Brokers are named as nodes (`b1`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

Replicas = Mapping[int, Sequence[str]]
"""Partition to its replicas, the preferred one first."""

Directories = Mapping[tuple[str, int], str]
"""Node and partition to a log directory."""


class ActFailed(Exception):
    """The cluster rejected an administrative operation, or did not finish it in time. In the second
    case the message ends with `UNHEEDED`."""

    UNHEEDED = "no refusal"


class AdminControls(Protocol):
    """An admin client at the clients' listener. Each operation becomes a row of `admin_ops`."""

    def topic_id(self, topic: str) -> str | None:
        """The id of the topic in ZooKeeper; None if the topic does not exist."""
        ...

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int,
        replication_factor: int,
        config: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic and wait until all partitions have leaders. Returns the topic id."""
        ...

    def delete_topic(self, topic: str, *, wait: bool = True) -> None:
        """Delete a topic. With `wait`, wait until ZooKeeper holds nothing of it."""
        ...

    def fill(self, topic: str, records: int) -> int:
        """Send records with acks=all. Returns the number of acknowledged ones."""
        ...

    def record_count(self, topic: str) -> int:
        """The number of records between the start and end offsets that the leaders report."""
        ...

    def offsets(self, topic: str) -> dict[int, tuple[int, int]]:
        """Partition to the log start offset and the end offset that the leader reports."""
        ...

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        """Delete the records before these offsets. Returns the low watermark by partition: no live
        replica has a record below it."""
        ...

    def add_partitions(self, topic: str, total: int) -> None:
        """Add partitions up to this number and wait until all have leaders."""
        ...

    def replicas(self, topic: str) -> dict[int, tuple[str, ...]]:
        """The assignment in ZooKeeper; during a reassignment, the old and the new replicas."""
        ...

    def reassign(self, topic: str, replicas: Replicas) -> None:
        """Begin a reassignment to these replicas."""
        ...

    def cancel_moves(self, topic: str, origin: Replicas) -> list[int]:
        """Cancel the reassignments in progress that began from `origin`. Returns the partitions
        whose cancellation was accepted, in order."""
        ...

    def await_reassigned(self, topic: str, replicas: Replicas, *, deadline_s: float) -> None:
        """Wait until the replicas are as requested and in sync, and no reassignment is in
        progress."""
        ...

    def directories(self, topic: str) -> dict[tuple[str, int], tuple[list[str], str]]:
        """Node and partition to the node's log directories, and that of the replica."""
        ...

    def move_logs(self, topic: str, directories: Directories) -> None:
        """Move replicas to these log directories and wait until they are there."""
        ...

    def elect(self, topic: str, partitions: Sequence[int], *, unclean: bool) -> dict[int, str]:
        """Elect preferred or unclean leaders. Returns the error's name by partition, empty for
        success."""
        ...

    def config(self, topic: str) -> dict[str, str]:
        """The topic's own settings, without defaults."""
        ...

    def set_config(self, topic: str, settings: Mapping[str, str | None]) -> None:
        """Change settings and wait until they are in effect; None restores a default."""
        ...

    def request_config(self, topic: str, settings: Mapping[str, str], *, wait_s: float) -> bool:
        """Request settings once. Returns whether an answer came in time; they may be in effect
        later without one."""
        ...

    def defaults(self) -> dict[str, str]:
        """The settings that are set for all brokers while they run."""
        ...

    def set_defaults(self, settings: Mapping[str, str | None]) -> None:
        """Change settings of all brokers and wait until each of them reports the values; None
        restores the value of its property file."""
        ...

    def quotas(self, client: str | None) -> dict[str, str]:
        """The quotas of a client id by name; None is the default client id."""
        ...

    def set_quotas(self, client: str | None, quotas: Mapping[str, float | None]) -> None:
        """Change quotas and wait until they are in effect; None removes a quota."""
        ...

    def decided_transactions(self) -> Sequence[str]:
        """Transactional ids whose decision is logged while some of its markers are missing."""
        ...

    def release(self, node: str) -> str:
        """The release of a node after its next start."""
        ...

    def upgrade(self, node: str, *, step: int) -> str:
        """Set step 1 (newer code, older inter-broker protocol) or step 2 (newer protocol) of a
        rolling upgrade for the next start of a node. Returns the release of that step."""
        ...

    def features(self) -> Mapping[str, int]:
        """The finalized level of each feature, as a broker reports it (KIP-584)."""
        ...

    def raise_features(self) -> Mapping[str, int]:
        """Raise the features to the levels of a new cluster of the target's release, and wait until
        a broker reports them. Does nothing if they have these levels. Returns the levels."""
        ...
