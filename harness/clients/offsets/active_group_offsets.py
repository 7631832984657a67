"""The only member of a group, which commits positions that are to be kept for a short time, and
looks whether they stay: they do as long as it lives and reads their topic (KIP-211).

    python -m urteil.harness.clients.offsets.active_group_offsets SPEC.json

It takes part by heartbeats alone. When a coordinator has not known it for a quarter of its session,
its positions may be forgotten at any time: to the evidence that is a deletion of which nobody knows
when it ends. `options`: `brief_ms`.
"""

from __future__ import annotations

import time

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.offsets.deleted_offsets import Forgetter
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.evidence.journal import Commit, CommitEntry, JournalWriter
from urteil.harness.protocol import committed_offset_requests as wire
from urteil.harness.protocol import group_requests
from urteil.harness.protocol.connection import Connection

EVERY_S = 0.4
SILENT_NS = 15_000_000_000


class Reader(Forgetter):
    """The client."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        super().__init__(spec, journal, stop)
        self._name = f"{spec.workload.group}-active"
        self._keep_ms = int(spec.workload.options["brief_ms"])
        self._member: tuple[int, str] | None = None
        self._heard_ns = 0

    @property
    def is_known(self) -> bool:
        return time.monotonic_ns() < self._heard_ns + SILENT_NS

    def join(self) -> bool:
        """Whether it is a member, and its positions are stored."""
        return self._visit(self._name, self._begin)

    def live(self) -> None:
        """Say that it lives, and ask for its positions."""
        self._visit(self._name, self._beat)
        self._visit(self._name, self._ask)

    def give_up(self) -> None:
        """From when it was last known its positions may be gone."""
        number = self._next_number()
        entries = [CommitEntry(self._topic, p, number, number) for p in self._partitions]
        self._journal.write(
            Commit(number, self._heard_ns, None, None, entries, None, self._name, True)
        )

    def _begin(self, at: Connection, group: str) -> None:
        asked = group_requests.join_request(
            group, "", group_requests.encode_subscription(self._topic)
        )
        generation, member_id = group_requests.read_join(at.call(asked))
        mine = group_requests.encode_assignment(self._topic, 0)
        at.call(group_requests.sync_request(group, generation, member_id, mine))
        self._heard_ns = time.monotonic_ns()
        self._member = member = generation, member_id
        self._write(
            at, group, self._partitions, wire.read_commit,
            lambda number: wire.commit_request(
                group, self._topic, self._partitions, number, self._keep_ms, member
            ),
        )  # fmt: skip

    def _beat(self, at: Connection, group: str) -> None:
        assert self._member is not None
        asked_ns = time.monotonic_ns()
        beat = group_requests.heartbeat_request(group, *self._member)
        if not group_requests.read_heartbeat(at.call(beat)):
            self._heard_ns = asked_ns


def live(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Until the end is asked for, or no coordinator knows it any more."""
    reader = Reader(spec, journal, stop)
    while not stop.asked() and not reader.join():
        stop.wait(EVERY_S)
    while not stop.asked() and reader.is_known:
        reader.live()
        stop.wait(EVERY_S)
    if not reader.is_known:
        reader.give_up()
    while not stop.asked():
        stop.wait(EVERY_S)


if __name__ == "__main__":
    run_client(live)
