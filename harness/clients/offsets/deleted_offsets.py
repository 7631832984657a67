"""Commits offsets of its own groups, deletes them, and checks that they stay deleted.

    python -m urteil.harness.clients.offsets.deleted_offsets SPEC.json

A round commits offsets of three partitions of the last topic, deletes one of them (OffsetDelete),
then the group (DeleteGroups), and reads all offsets after each step; besides, it reads those of any
earlier group. No other client uses these groups. After three rounds, or after a request without
success, a group is only read, and a new group replaces it. Each request is sent once, to the
coordinator.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Meta

from urteil.chaos.capabilities import OFFSET_DELETION
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.options import WorkloadOptions
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import (
    Commit,
    CommitEntry,
    CommitRead,
    Committed,
    JournalWriter,
)
from urteil.harness.protocol import committed_offset_requests as requests
from urteil.harness.protocol.connection import Connection

GROUPS, ROUNDS = 2, 3
"""Number of groups in use, and rounds of each: offsets that were deleted long ago must stay
deleted, too."""
PARTITIONS = 3
STEP_S = 0.05
BROKEN = (OSError, struct.error, UnicodeDecodeError)


class DeletionOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    deletions: Annotated[
        bool, Meta(description="Adds a client that deletes offsets and groups of its own.")
    ] = False


class OutcomeUnknown(Exception):
    """The outcome of a request, or the coordinator, is unknown."""


class OffsetDeleter:
    """The client; subclasses test the retention of offsets."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        self._spec = spec
        self._journal = journal
        self._stop = stop
        self._random = random.Random(spec.seed)
        self._topic = spec.topics[-1].name
        self._partitions = list(range(min(PARTITIONS, spec.topics[-1].partitions)))
        self._groups: list[str] = []
        self._rounds_left: dict[str, int] = {}
        self._number = 0

    def run_round(self) -> None:
        """One round with one group, and a read of another one."""
        if len(self._rounds_left) < GROUPS:
            name = f"{self._spec.workload.group}-gone-{len(self._groups)}"
            self._groups.append(name)
            self._rounds_left[name] = ROUNDS
        group = self._random.choice(list(self._rounds_left))
        self._rounds_left[group] -= 1
        if not self._at_coordinator(group, self._commit_and_delete) or not self._rounds_left[group]:
            del self._rounds_left[group]
        self._at_coordinator(self._random.choice(self._groups), self._read)

    def _at_coordinator(self, group: str, act: Callable[[Connection, str], None]) -> bool:
        """Call `act` with a connection to the group's coordinator. Returns whether it succeeded."""
        timeout_s = self._spec.workload.request_timeout_ms / 1000
        try:
            at = Connection(self._coordinator(group, timeout_s), timeout_s)
            try:
                act(at, group)
            finally:
                at.close()
        except (OutcomeUnknown, *BROKEN):
            return False
        return True

    def _coordinator(self, group: str, timeout_s: float) -> str:
        at = Connection(self._random.choice(self._spec.bootstrap), timeout_s)
        try:
            error, address = requests.read_find_coordinator(
                at.call(requests.find_coordinator_request(group))
            )
        finally:
            at.close()
        if error:
            raise OutcomeUnknown(f"error {error}")
        return address

    def _commit_and_delete(self, at: Connection, group: str) -> None:
        target = self._topic, self._partitions
        self._write(at, group, target[1], requests.read_commit,
                    lambda number: requests.commit_request(group, *target, number))  # fmt: skip
        self._read(at, group)
        first = self._partitions[:1]
        self._write(at, group, first, requests.read_delete,
                    lambda _: requests.offset_delete_request(group, self._topic, first),
                    deletes=True)  # fmt: skip
        self._read(at, group)
        self._write(at, group, target[1], requests.read_delete_group,
                    lambda _: requests.delete_group_request(group), deletes=True)  # fmt: skip
        self._read(at, group)

    def _write(
        self,
        at: Connection,
        group: str,
        partitions: Sequence[int],
        read: Callable[[bytes], int],
        request: Callable[[int], bytes],
        *,
        deletes: bool = False,
    ) -> None:
        """Send a commit with a number of its own, or a deletion, once. OutcomeUnknown unless it
        succeeded."""
        number = self._next_number()
        entries = [CommitEntry(self._topic, partition, number, number) for partition in partitions]
        begun = Commit(number, time.monotonic_ns(), None, None, entries, None, group, deletes)
        self._journal.write(begun)
        failure_text: str | None = None
        try:
            error = read(at.call(request(number)))
            failure_text = f"error {error}" if error else None
        except BROKEN as failure:
            failure_text = type(failure).__name__
        outcome = "info" if failure_text else "ok"
        self._journal.write(Committed(number, time.monotonic_ns(), outcome, failure_text))
        if failure_text:
            raise OutcomeUnknown(failure_text)
        self._stop.wait(STEP_S)

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _read(self, at: Connection, group: str, until_ns: int | None = None) -> None:
        """Read and journal the offsets, unless the response arrives after `until_ns`."""
        invoke_ns = time.monotonic_ns()
        data = at.call(requests.fetch_request(group, self._topic, self._partitions))
        error, result = requests.read_fetch(data)
        complete_ns = time.monotonic_ns()
        if error:
            raise OutcomeUnknown(f"error {error}")
        if until_ns is not None and complete_ns > until_ns:
            return
        for partition, offset in result.items():
            self._journal.write(
                CommitRead(invoke_ns, complete_ns, "ok", None, None, None, self._topic, partition,
                           offset, None, group)
            )  # fmt: skip
        self._stop.wait(STEP_S)


def delete_offsets(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Run rounds until the stop is requested."""
    deleter = OffsetDeleter(spec, journal, stop)
    while not stop.is_set():
        deleter.run_round()
        stop.wait(STEP_S)


KIND = ClientKind(
    name="forgetter",
    about="Deletes committed offsets and groups of its own, and checks that they stay deleted.",
    needs=lambda _: (OFFSET_DELETION,),
    stage=Stage.LOAD,
    judged_by=("commit_register",),
    prefix="forgetter",
    count=lambda scenario: int(DeletionOptions.of(scenario.workload).deletions),
    work=delete_offsets,
    options=(DeletionOptions,),
)

if __name__ == "__main__":
    run_client(KIND)
