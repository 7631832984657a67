"""Commits offsets with a short retention, and checks that they exist until then and not longer.

    python -m urteil.harness.clients.offsets.expiring_offsets SPEC.json

Each group commits once and sets the retention itself (OffsetCommit 2); one in three sets none and
keeps its offsets as long as brokers do. After the retention a coordinator may delete the offsets,
and does so at its next check. In the evidence that is a deletion: invoked when the retention ends,
completed when every broker must have checked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.offsets.deleted_offsets import OffsetDeleter
from urteil.harness.clients.options import WorkloadOptions
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import Commit, CommitEntry, Committed, JournalWriter
from urteil.harness.protocol import committed_offset_requests as requests
from urteil.harness.protocol.connection import Connection

EVERY_NS = 400_000_000
ROUND_S = 0.05
LATE_NS = 6_000_000_000
"""Brokers check every second (`offsets.retention.check.interval.ms`) and have five more."""
FOREVER_NS = 1 << 62


class ExpiryOptions(WorkloadOptions, frozen=True):
    """Options of the clients with a short retention."""

    brief_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=86_400_000,
            description="Adds two clients whose offsets expire after this time in ms, one of "
            "them in a group with a member.",
        ),
    ] = 0


@dataclass(slots=True)
class ExpiringGroup:
    """A group, the time until which its offsets exist, and the number of the deletion
    that follows."""

    name: str
    until_ns: int
    number: int | None = None
    is_deleted: bool = False


class ExpiringOffsets(OffsetDeleter):
    """The client. It reads the groups in random order."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        super().__init__(spec, journal, stop)
        self._keep_ms = ExpiryOptions.of(spec.workload).brief_ms
        self._groups_by_age: list[ExpiringGroup] = []
        self._count = self._next_ns = 0

    def step(self) -> None:
        """Commit when it is time, journal expired offsets, and read one group."""
        now_ns = time.monotonic_ns()
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + EVERY_NS
            self._commit_new_group()
        for group in self._groups_by_age:
            self._note_expiry(group, time.monotonic_ns())
        if self._groups_by_age:
            group = self._random.choice(self._groups_by_age)
            until_ns = group.until_ns if group.number is None else None
            self._at_coordinator(group.name, lambda at, group: self._read(at, group, until_ns))

    def _commit_new_group(self) -> None:
        """Commit for a new group. A group whose commit may have failed is never read."""
        name = f"{self._spec.workload.group}-brief-{self._count}"
        retention_ms = -1 if self._count % 3 == 2 else self._keep_ms
        self._count += 1
        keep_ns = FOREVER_NS if retention_ms < 0 else retention_ms * 1_000_000
        until_ns = time.monotonic_ns() + keep_ns

        def commit(at: Connection, group: str) -> None:
            self._write(
                at, group, self._partitions, requests.read_commit,
                lambda number: requests.commit_request(
                    group, self._topic, self._partitions, number, retention_ms
                ),
            )  # fmt: skip

        if self._at_coordinator(name, commit):
            self._groups_by_age.append(ExpiringGroup(name, until_ns))

    def _note_expiry(self, expiring_group: ExpiringGroup, now_ns: int) -> None:
        """Journal the deletion by expiry."""
        if expiring_group.number is None and now_ns >= expiring_group.until_ns:
            expiring_group.number = self._next_number()
            entries = [
                CommitEntry(self._topic, p, expiring_group.number, expiring_group.number)
                for p in self._partitions
            ]
            begun = Commit(
                expiring_group.number, now_ns, None, None, entries, None, expiring_group.name, True
            )
            self._journal.write(begun)
        elif (
            expiring_group.number is not None
            and not expiring_group.is_deleted
            and now_ns >= expiring_group.until_ns + LATE_NS
        ):
            expiring_group.is_deleted = True
            self._journal.write(Committed(expiring_group.number, now_ns, "ok", None))


def commit_expiring_offsets(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Commit and read until the stop is requested."""
    client = ExpiringOffsets(spec, journal, stop)
    while not stop.is_set():
        client.step()
        stop.wait(ROUND_S)


KIND = ClientKind(
    name="brief",
    about="Commits offsets with a short retention, and checks that they exist until then "
    "and not longer.",
    stage=Stage.LOAD,
    judged_by=("commit_register",),
    prefix="brief",
    count=lambda scenario: int(ExpiryOptions.of(scenario.workload).brief_ms > 0),
    work=commit_expiring_offsets,
    options=(ExpiryOptions,),
)

if __name__ == "__main__":
    run_client(KIND)
