"""Commits positions that are to be kept for a short time, and looks whether they are there so long,
and no longer.

    python -m urteil.harness.clients.offsets.expiring_offsets SPEC.json

Each group of its own commits once, and names the time itself (OffsetCommit 2); one in three names
none, and has its positions for as long as brokers keep them. When a time has passed a coordinator
may forget, and does so at its next look. To the evidence that is a deletion, invoked when the time
is over, and complete when everybody must have looked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.offsets.deleted_offsets import Forgetter
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.evidence.journal import Commit, CommitEntry, Committed, JournalWriter
from urteil.harness.protocol import committed_offset_requests as wire
from urteil.harness.protocol.connection import Connection

EVERY_NS = 400_000_000
ROUND_S = 0.05
LATE_NS = 6_000_000_000
"""Brokers look every second (`offsets.retention.check.interval.ms`), and have five more."""
FOR_EVER_NS = 1 << 62


@dataclass(slots=True)
class Brief:
    """A group, until when its positions stay, and the number of the deletion that follows."""

    name: str
    until_ns: int
    number: int | None = None
    is_gone: bool = False


class Keeper(Forgetter):
    """The client; the groups are asked for in any order."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        super().__init__(spec, journal, stop)
        self._keep_ms = int(spec.workload.options["brief_ms"])
        self._kept: list[Brief] = []
        self._begun = self._next_ns = 0

    def look(self) -> None:
        """Commit when it is time, note what is over, and ask for one group."""
        now_ns = time.monotonic_ns()
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + EVERY_NS
            self._begin()
        for one in self._kept:
            self._note(one, time.monotonic_ns())
        if self._kept:
            one = self._random.choice(self._kept)
            until_ns = one.until_ns if one.number is None else None
            self._visit(one.name, lambda at, group: self._ask(at, group, until_ns))

    def _begin(self) -> None:
        """One that is not known to have been stored is never asked for."""
        name = f"{self._spec.workload.group}-brief-{self._begun}"
        retention_ms = -1 if self._begun % 3 == 2 else self._keep_ms
        self._begun += 1
        keep_ns = FOR_EVER_NS if retention_ms < 0 else retention_ms * 1_000_000
        until_ns = time.monotonic_ns() + keep_ns

        def commit(at: Connection, group: str) -> None:
            self._write(
                at, group, self._partitions, wire.read_commit,
                lambda number: wire.commit_request(
                    group, self._topic, self._partitions, number, retention_ms
                ),
            )  # fmt: skip

        if self._visit(name, commit):
            self._kept.append(Brief(name, until_ns))

    def _note(self, one: Brief, now_ns: int) -> None:
        """The deletion that time is."""
        if one.number is None and now_ns >= one.until_ns:
            one.number = self._next_number()
            entries = [
                CommitEntry(self._topic, p, one.number, one.number) for p in self._partitions
            ]
            begun = Commit(one.number, now_ns, None, None, entries, None, one.name, True)
            self._journal.write(begun)
        elif one.number is not None and not one.is_gone and now_ns >= one.until_ns + LATE_NS:
            one.is_gone = True
            self._journal.write(Committed(one.number, now_ns, "ok", None))


def keep(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Until the end is asked for."""
    keeper = Keeper(spec, journal, stop)
    while not stop.asked():
        keeper.look()
        stop.wait(ROUND_S)


if __name__ == "__main__":
    run_client(keep)
