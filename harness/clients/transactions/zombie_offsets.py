"""A consumer that was removed from its generation, and still commits offsets in a transaction.

    python -m urteil.harness.clients.transactions.zombie_offsets SPEC.json

The client is the only member of a group of its own, and begins a new generation each time. Then it
commits a transaction with an offset in the previous generation, like a member that slept through a
rebalance. The group's coordinator must reject the offset (KIP-447), because no other mechanism
fences such a zombie with a transactional id of its own. Before each generation it requests its last
assignment again, which the current coordinator must know.

With the option `present_offsets` it also commits an offset in the current generation, which must be
accepted. Before that transaction ends it requests stable offsets only, and the response must have
none. And it commits an offset without a generation, like a client that uses a group only for its
offsets: the coordinator of a group with a member must reject it.
"""

from __future__ import annotations

import contextlib
import time
from typing import Annotated

from msgspec import Meta

from urteil.chaos.capabilities import GROUP_TRANSACTIONS, TRANSACTIONS
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage, Writes
from urteil.harness.clients.options import TransactionOptions, WorkloadOptions
from urteil.harness.clients.spec import ClientSpec, transactional_id
from urteil.harness.clients.stop import Stop
from urteil.harness.clients.transactions.delayed_requests import DelayedRequests, RequestFailed
from urteil.harness.clients.transactions.journaled_transactions import AS_COMMIT
from urteil.harness.evidence.journal import (
    Assigned,
    Commit,
    CommitEntry,
    CommitRead,
    Committed,
    JournalWriter,
    TxnCommit,
)
from urteil.harness.protocol.committed_offset_requests import commit_request
from urteil.harness.protocol.group_requests import (
    JOIN,
    SYNC,
    encode_assignment,
    join_request,
    read_join,
    read_stable_offset,
    read_sync,
    stable_offset_request,
    sync_request,
)
from urteil.harness.protocol.transaction_requests import (
    ADD_OFFSETS,
    COMMIT_OFFSETS,
    END_TXN,
    FIND_COORDINATOR,
    GROUP_COORDINATOR,
    OFFSET_COMMIT,
    STABLE_OFFSETS,
    TRANSACTION_COORDINATOR,
    Producer,
    add_offsets_request,
    end_txn_request,
    find_coordinator_request,
    txn_offset_commit_request,
)

EVERY_S = 0.5
UNKNOWN_MEMBER = "error 25"
FENCED_MEMBER = ("error 22", UNKNOWN_MEMBER)
"""ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID: nothing was stored."""
UNSTABLE = "error 88"
NOTHING = 0
"""The offset of a member that has processed nothing: it may be accepted."""
NO_GENERATION, WITHOUT_GENERATION = -1, 1 << 20
"""The latter is added to the numbers of commits without a generation."""


class ZombieOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    zombie_offsets: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="The number of transactions with an offset of an ended generation.",
        ),
    ] = 0
    present_offsets: Annotated[
        bool, Meta(description="The zombie also commits in the present generation and without one.")
    ] = False


class Zombie(DelayedRequests):
    """The client, with a transactional id and a group of its own."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        super().__init__(spec, journal)
        self._group = transactional_id(spec)
        self._is_present = ZombieOptions.of(spec.workload).present_offsets
        self._member_id = ""
        self._generation: int | None = None
        self._assignment = encode_assignment(*self._first)

    def run_generations(self) -> None:
        """A generation, the next one, and a transaction in each. RequestFailed if the cluster
        prevents this; then nothing was tested."""
        try:
            if self._producer.epoch < 0:
                self._request(
                    FIND_COORDINATOR, find_coordinator_request(self._group, GROUP_COORDINATOR)
                )
                name = self._producer.transactional_id
                self._request(
                    FIND_COORDINATOR, find_coordinator_request(name, TRANSACTION_COORDINATOR)
                )
                self._initialise()
            self._request_last_assignment()
            generation, latest = self._join(), self._join()
            if self._is_present:
                self._commit_without_generation()
        except RequestFailed as failure:
            if str(failure) == UNKNOWN_MEMBER:
                self._member_id = ""
            raise
        self._commit_in(generation)
        if self._is_present:
            self._commit_in(latest, NOTHING)

    def _join(self) -> int:
        """Join the group. Returns the new generation."""
        answer = self._request(JOIN, join_request(self._group, self._member_id))
        generation, self._member_id = read_join(answer)
        self._sync(generation, self._assignment)
        self._note("assigned", generation)
        self._generation = generation
        return generation

    def _request_last_assignment(self) -> None:
        """Request the assignment of the last generation again. If the coordinator had to begin
        another generation that failed, it rejects the older one."""
        generation, self._generation = self._generation, None
        if generation is not None:
            self._sync(generation, None)
            self._generation = generation

    def _sync(self, generation: int, assignment: bytes | None) -> None:
        request = sync_request(self._group, generation, self._member_id, assignment)
        assignment_now = read_sync(self._request(SYNC, request))
        self._note("kept" if assignment_now == self._assignment else "forgotten", generation)

    def _note(self, event: str, generation: int) -> None:
        at_ns = time.monotonic_ns()
        self._journal.write(Assigned(at_ns, event, generation, self._member_id, [self._first]))

    def _commit_in(self, generation: int, offset: int | None = None) -> None:
        """A transaction with this position, or with one that is its number."""
        number, outcome, error_text = self._begin(), "unknown", None
        offset = number if offset is None else offset
        request = txn_offset_commit_request(
            self._producer, (self._group, generation, self._member_id), *self._first, offset
        )
        position = [CommitEntry(*self._first, offset, offset)]
        self._journal.write(
            Commit(number, time.monotonic_ns(), generation, self._member_id, position, number)
        )
        try:
            self._request(ADD_OFFSETS, add_offsets_request(self._producer, self._group))
            error_text = self._rejection(COMMIT_OFFSETS, request)
            if error_text is None:
                self._read_stable_offset()
                self._journal.write(TxnCommit(number, time.monotonic_ns()))
            self._request(END_TXN, end_txn_request(self._producer, commit=error_text is None))
            outcome = "committed" if error_text is None else "aborted"
        except RequestFailed as failure:
            error_text = str(failure)
            self._producer = Producer(self._producer.transactional_id)
        self._note_end(number, outcome, None)
        self._journal.write(Committed(number, time.monotonic_ns(), AS_COMMIT[outcome], error_text))

    def _read_stable_offset(self) -> None:
        """Request the group's stable offset and journal the response."""
        invoke_ns, offset, error_text = time.monotonic_ns(), None, None
        try:
            answer = self._request(STABLE_OFFSETS, stable_offset_request(self._group, *self._first))
            offset = read_stable_offset(answer, self._first[0])
        except RequestFailed as failure:
            error_text = str(failure)
        outcome = "ok" if error_text is None else "fail" if error_text == UNSTABLE else "info"
        now_ns = time.monotonic_ns()
        self._journal.write(
            CommitRead(invoke_ns, now_ns, outcome, error_text, None, None, *self._first, offset)
        )

    def _commit_without_generation(self) -> None:
        """Commit without a generation."""
        number = WITHOUT_GENERATION + self._txns
        position = [CommitEntry(*self._first, number, number)]
        begun = Commit(number, time.monotonic_ns(), NO_GENERATION, "", position)
        self._journal.write(begun)
        request = commit_request(self._group, self._first[0], [self._first[1]], number)
        try:
            result = self._rejection(OFFSET_COMMIT, request)
            outcome = "ok" if result is None else "fail"
        except RequestFailed as failure:
            outcome, result = "info", str(failure)
        self._journal.write(Committed(number, time.monotonic_ns(), outcome, result))

    def _rejection(self, api: tuple[int, int], request: bytes) -> str | None:
        """The error with which the offset was rejected; None if it was accepted. RequestFailed for
        any other error."""
        try:
            self._request(api, request)
        except RequestFailed as failure:
            if str(failure) in FENCED_MEMBER:
                return str(failure)
            raise
        return None


def send_zombie_offsets(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Run `zombie_offsets` rounds; a round that fails is not repeated."""
    zombie = Zombie(spec, journal)
    for _ in range(ZombieOptions.of(spec.workload).zombie_offsets):
        if stop.is_set():
            return
        with contextlib.suppress(RequestFailed):
            zombie.run_generations()
        stop.wait(EVERY_S)
    stop.wait_until_set()


KIND = ClientKind(
    name="zombie",
    about="A removed group member that commits offsets in a transaction; the coordinator "
    "must reject it.",
    needs=lambda _: (TRANSACTIONS, GROUP_TRANSACTIONS),
    stage=Stage.LOAD,
    judged_by=("zombie_commit",),
    prefix="zombie",
    count=lambda scenario: int(ZombieOptions.of(scenario.workload).zombie_offsets > 0),
    work=send_zombie_offsets,
    options=(ZombieOptions, TransactionOptions),
    writes=Writes.IN_TRANSACTIONS,
    group=transactional_id,
)

if __name__ == "__main__":
    run_client(KIND)
