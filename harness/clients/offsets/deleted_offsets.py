"""Commits positions of groups of its own, has them deleted, and looks whether they stay away.

    python -m urteil.harness.clients.offsets.deleted_offsets SPEC.json

A round: commit positions of three partitions of the last topic, have one of them deleted
(OffsetDelete), then the whole group (DeleteGroups), and ask for all of them after each; beside that
ask for those of any group that there was. Nobody else uses these groups. After three rounds, or a
request that was not answered, or refused, a group is only asked for any more, and another one takes
its place. A request is tried once, at the coordinator.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Sequence

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.evidence.journal import (
    Commit,
    CommitEntry,
    CommitRead,
    Committed,
    JournalWriter,
)
from urteil.harness.protocol import committed_offset_requests as wire
from urteil.harness.protocol.connection import Connection

GROUPS, ROUNDS = 2, 3
"""So many are in use at a time, so often: what was deleted long ago must stay away, too."""
PARTITIONS = 3
STEP_S = 0.05
BROKEN = (OSError, struct.error, UnicodeDecodeError)


class Unknown(Exception):
    """What became of a request, or where to send it, is not known."""


class Forgetter:
    """The client."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        self._spec = spec
        self._journal = journal
        self._stop = stop
        self._random = random.Random(spec.seed)
        self._topic = spec.topics[-1].name
        self._partitions = list(range(min(PARTITIONS, spec.topics[-1].partitions)))
        self._groups: list[str] = []
        self._left: dict[str, int] = {}
        self._number = 0

    def round(self) -> None:
        """With one group, and a look at another."""
        if len(self._left) < GROUPS:
            name = f"{self._spec.workload.group}-gone-{len(self._groups)}"
            self._groups.append(name)
            self._left[name] = ROUNDS
        group = self._random.choice(list(self._left))
        self._left[group] -= 1
        if not self._visit(group, self._commit_and_forget) or not self._left[group]:
            del self._left[group]
        self._visit(self._random.choice(self._groups), self._ask)

    def _visit(self, group: str, act: Callable[[Connection, str], None]) -> bool:
        """Whether it came to its end, at the group's coordinator."""
        timeout_s = self._spec.workload.request_timeout_ms / 1000
        try:
            at = Connection(self._coordinator(group, timeout_s), timeout_s)
            try:
                act(at, group)
            finally:
                at.close()
        except (Unknown, *BROKEN):
            return False
        return True

    def _coordinator(self, group: str, timeout_s: float) -> str:
        at = Connection(self._random.choice(self._spec.bootstrap), timeout_s)
        try:
            error, address = wire.read_find_coordinator(
                at.call(wire.find_coordinator_request(group))
            )
        finally:
            at.close()
        if error:
            raise Unknown(f"error {error}")
        return address

    def _commit_and_forget(self, at: Connection, group: str) -> None:
        here = self._topic, self._partitions
        self._write(at, group, here[1], wire.read_commit,
                    lambda number: wire.commit_request(group, *here, number))  # fmt: skip
        self._ask(at, group)
        first = self._partitions[:1]
        self._write(at, group, first, wire.read_delete,
                    lambda _: wire.offset_delete_request(group, self._topic, first),
                    deletes=True)  # fmt: skip
        self._ask(at, group)
        self._write(at, group, here[1], wire.read_delete_group,
                    lambda _: wire.delete_group_request(group), deletes=True)  # fmt: skip
        self._ask(at, group)

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
        """A commit of a number of its own, or a deletion, once. Unknown unless it was done."""
        number = self._next_number()
        entries = [CommitEntry(self._topic, one, number, number) for one in partitions]
        begun = Commit(number, time.monotonic_ns(), None, None, entries, None, group, deletes)
        self._journal.write(begun)
        told: str | None = None
        try:
            error = read(at.call(request(number)))
            told = f"error {error}" if error else None
        except BROKEN as failure:
            told = type(failure).__name__
        outcome = "info" if told else "ok"
        self._journal.write(Committed(number, time.monotonic_ns(), outcome, told))
        if told:
            raise Unknown(told)
        self._stop.wait(STEP_S)

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _ask(self, at: Connection, group: str, until_ns: int | None = None) -> None:
        """An answer that comes later than `until_ns` is not kept."""
        invoke_ns = time.monotonic_ns()
        data = at.call(wire.fetch_request(group, self._topic, self._partitions))
        error, found = wire.read_fetch(data)
        complete_ns = time.monotonic_ns()
        if error:
            raise Unknown(f"error {error}")
        if until_ns is not None and complete_ns > until_ns:
            return
        for partition, offset in found.items():
            self._journal.write(
                CommitRead(invoke_ns, complete_ns, "ok", None, None, None, self._topic, partition,
                           offset, None, group)
            )  # fmt: skip
        self._stop.wait(STEP_S)


def forget(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Until the end is asked for."""
    forgetter = Forgetter(spec, journal, stop)
    while not stop.asked():
        forgetter.round()
        stop.wait(STEP_S)


if __name__ == "__main__":
    run_client(forget)
