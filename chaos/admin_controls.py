"""What an administrator may ask of a cluster, as faults do it: declared here, done by the harness.

Every call is one act, or one wish and its end, with a deadline of its own; a cluster that refuses
or does not come to an end is an `ActFailed`. What answers is the cluster: callers look at its state
for the proof. Brokers are named as nodes (`b1`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

Replicas = Mapping[int, Sequence[str]]
"""Partition to its replicas, the preferred one first."""

Directories = Mapping[tuple[str, int], str]
"""Log directory by node and partition."""


class ActFailed(Exception):
    """The cluster refused an administrative act, or did not finish it in time; with `UNHEEDED` in
    the end of what it says, without a refusal."""

    UNHEEDED = "no refusal"


class AdminControls(Protocol):
    """Through the clients' listener, as any administrator's tool. Acts are noted as evidence."""

    def topic_id(self, topic: str) -> str | None:
        """The id of the topic that ZooKeeper holds under that name; None without one."""
        ...

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int,
        replication_factor: int,
        config: Mapping[str, str] | None = None,
    ) -> str:
        """Make a topic, and wait until all its partitions are led; its id."""
        ...

    def delete_topic(self, topic: str, *, wait: bool = True) -> None:
        """Ask for a topic's end and, on wish, wait until nothing in ZooKeeper is left of it."""
        ...

    def fill(self, topic: str, records: int) -> int:
        """Write so many records of the lab's own with acks=all; how many were acknowledged."""
        ...

    def record_count(self, topic: str) -> int:
        """Records between start and end of all partitions, as their leaders tell."""
        ...

    def offsets(self, topic: str) -> dict[int, tuple[int, int]]:
        """Partition to its start and its end, as leaders tell them."""
        ...

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        """Delete what lies before these offsets; partition to its low watermark then: no live
        replica has anything below."""
        ...

    def add_partitions(self, topic: str, total: int) -> None:
        """Have so many partitions, all of them led."""
        ...

    def replicas(self, topic: str) -> dict[int, tuple[str, ...]]:
        """The assignment as ZooKeeper has it; while a reassignment runs, old and new ones."""
        ...

    def reassign(self, topic: str, wanted: Replicas) -> None:
        """Begin to move partitions to these replicas."""
        ...

    def cancel_moves(self, topic: str, origin: Replicas) -> list[int]:
        """Cancel what is under way of moves that began from `origin`; the partitions of which that
        was accepted, in order."""
        ...

    def await_reassigned(self, topic: str, wanted: Replicas, *, deadline_s: float) -> None:
        """Wait until these are the replicas, all of them in sync, and nothing is under way."""
        ...

    def directories(self, topic: str) -> dict[tuple[str, int], tuple[list[str], str]]:
        """By node and partition: the log directories of the node, and where the replica lies."""
        ...

    def move_logs(self, topic: str, wanted: Directories) -> None:
        """Have replicas in these log directories, and wait until they are."""
        ...

    def elect(self, topic: str, partitions: Sequence[int], *, unclean: bool) -> dict[int, str]:
        """Ask for preferred or unclean leaders; partition to the error's name, empty for none."""
        ...

    def config(self, topic: str) -> dict[str, str]:
        """The topic's own settings."""
        ...

    def set_config(self, topic: str, settings: Mapping[str, str | None]) -> None:
        """Set some of them and wait until they stand; None leaves one to the brokers' default."""
        ...

    def quotas(self, client: str | None) -> dict[str, str]:
        """What a client id may take of each broker, by the quota's name; None is the default."""
        ...

    def set_quotas(self, client: str | None, quotas: Mapping[str, float | None]) -> None:
        """Set some of them and wait until they stand; None removes one."""
        ...

    def decided_transactions(self) -> Sequence[str]:
        """Transactional ids whose coordinator has their end in its log and still owes markers."""
        ...

    def release(self, node: str) -> str:
        """The version that a broker runs, as of its next start."""
        ...

    def upgrade(self, node: str, *, step: int) -> str:
        """From its next start on, a broker runs step 1 (newer code, older protocol between brokers)
        or 2 (newer protocol too) of a rolling upgrade; answers the release it then is."""
        ...
