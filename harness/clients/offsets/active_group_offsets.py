"""The only member of a group: it commits offsets with a short retention and checks that they stay,
because it is alive and subscribed to their topic (KIP-211).

    python -m urteil.harness.clients.offsets.active_group_offsets SPEC.json

The member only heartbeats. After a quarter of its session without a successful heartbeat, its
offsets may be deleted at any time: in the evidence that is a deletion with unknown end.
"""

from __future__ import annotations

import time

from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.offsets.deleted_offsets import OffsetDeleter
from urteil.harness.clients.offsets.expiring_offsets import ExpiryOptions
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import Commit, CommitEntry, JournalWriter
from urteil.harness.protocol import committed_offset_requests as requests
from urteil.harness.protocol import group_requests
from urteil.harness.protocol.connection import Connection

EVERY_S = 0.4
SILENT_NS = 15_000_000_000


class ActiveMember(OffsetDeleter):
    """The client."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        super().__init__(spec, journal, stop)
        self._name = f"{spec.workload.group}-active"
        self._keep_ms = ExpiryOptions.of(spec.workload).brief_ms
        self._member: tuple[int, str] | None = None
        self._accepted_ns = 0

    @property
    def is_known(self) -> bool:
        return time.monotonic_ns() < self._accepted_ns + SILENT_NS

    def join(self) -> bool:
        """Join the group and commit. Returns whether both succeeded."""
        return self._at_coordinator(self._name, self._begin)

    def keep_alive(self) -> None:
        """Send a heartbeat and read the offsets."""
        self._at_coordinator(self._name, self._heartbeat)
        self._at_coordinator(self._name, self._read)

    def give_up(self) -> None:
        """Journal a deletion that may have begun after the last successful heartbeat."""
        number = self._next_number()
        entries = [CommitEntry(self._topic, p, number, number) for p in self._partitions]
        self._journal.write(
            Commit(number, self._accepted_ns, None, None, entries, None, self._name, True)
        )

    def _begin(self, at: Connection, group: str) -> None:
        join = group_requests.join_request(
            group, "", group_requests.encode_subscription(self._topic)
        )
        generation, member_id = group_requests.read_join(at.call(join))
        assignment = group_requests.encode_assignment(self._topic, 0)
        at.call(group_requests.sync_request(group, generation, member_id, assignment))
        self._accepted_ns = time.monotonic_ns()
        self._member = member = generation, member_id
        self._write(
            at, group, self._partitions, requests.read_commit,
            lambda number: requests.commit_request(
                group, self._topic, self._partitions, number, self._keep_ms, member
            ),
        )  # fmt: skip

    def _heartbeat(self, at: Connection, group: str) -> None:
        assert self._member is not None
        sent_ns = time.monotonic_ns()
        beat = group_requests.heartbeat_request(group, *self._member)
        if not group_requests.read_heartbeat(at.call(beat)):
            self._accepted_ns = sent_ns


def stay_active(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Stay a member until the stop is requested, or until no coordinator accepts its heartbeats."""
    member = ActiveMember(spec, journal, stop)
    while not stop.is_set() and not member.join():
        stop.wait(EVERY_S)
    while not stop.is_set() and member.is_known:
        member.keep_alive()
        stop.wait(EVERY_S)
    if not member.is_known:
        member.give_up()
    while not stop.is_set():
        stop.wait(EVERY_S)


KIND = ClientKind(
    name="active",
    about="The only member of a group, whose offsets must outlive their short retention.",
    stage=Stage.LOAD,
    judged_by=("commit_register",),
    prefix="active",
    count=lambda scenario: int(ExpiryOptions.of(scenario.workload).brief_ms > 0),
    work=stay_active,
    options=(ExpiryOptions,),
)

if __name__ == "__main__":
    run_client(KIND)
