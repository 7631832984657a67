"""A consumer that was put out of its generation, and still sends its positions to a transaction.

    python -m urteil.harness.clients.transactions.zombie_offsets SPEC.json

It is the only member of a group of its own, and begins a new generation each time. Then it commits
a transaction with a position in the generation before, as somebody who slept through a rebalance
does: the group's coordinator has to refuse the position (KIP-447), for nothing else keeps such a
zombie out, whose transactional id is its own. Before each generation it asks for its partitions of
the last one again, which whoever coordinates the group by then has to know.

With the option `present_offsets` it does more. In the generation that there is its position has to
be taken. Before that transaction ends it asks for stable positions alone, and must be told none.
And it commits a position without any generation, as somebody does who uses a group for its
positions only: of a group with a member it is refused.
"""

from __future__ import annotations

import contextlib
import time

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.transactions.delayed_requests import LateEnd, Refused
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
PUT_OUT = ("error 22", UNKNOWN_MEMBER)
"""ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID: nothing was stored."""
UNSTABLE = "error 88"
NOTHING = 0
"""The position of who has processed nothing: it may be taken."""
NO_GENERATION, OF_NOBODY = -1, 1 << 20
"""The latter is added to the numbers of commits that are nobody's."""


class Zombie(LateEnd):
    """The client; it has a transactional id and a group of its own."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        super().__init__(spec, journal)
        self._group = spec.group
        self._is_present = spec.workload.options.get("present_offsets", "0") != "0"
        self._member_id = ""
        self._generation: int | None = None
        self._assignment = encode_assignment(*self._first)

    def haunt(self) -> None:
        """A generation, the next one, and a transaction in each. Refused where the cluster does
        not let it come so far: then nothing was tried."""
        try:
            if self._producer.epoch < 0:
                self._ask(
                    FIND_COORDINATOR, find_coordinator_request(self._group, GROUP_COORDINATOR)
                )
                name = self._producer.transactional_id
                self._ask(FIND_COORDINATOR, find_coordinator_request(name, TRANSACTION_COORDINATOR))
                self._initialise()
            self._recall()
            generation, latest = self._join(), self._join()
            if self._is_present:
                self._intrude()
        except Refused as refused:
            if str(refused) == UNKNOWN_MEMBER:
                self._member_id = ""
            raise
        self._commit_in(generation)
        if self._is_present:
            self._commit_in(latest, NOTHING)

    def _join(self) -> int:
        """The generation that begins with it."""
        answer = self._ask(JOIN, join_request(self._group, self._member_id))
        generation, self._member_id = read_join(answer)
        self._sync(generation, self._assignment)
        self._note("assigned", generation)
        self._generation = generation
        return generation

    def _recall(self) -> None:
        """What the coordinator knows of the last generation that was begun. It may have had to give
        up the next one, of which its members were not told; else it refuses the older one."""
        generation, self._generation = self._generation, None
        if generation is not None:
            self._sync(generation, None)
            self._generation = generation

    def _sync(self, generation: int, assignment: bytes | None) -> None:
        request = sync_request(self._group, generation, self._member_id, assignment)
        told = read_sync(self._ask(SYNC, request))
        self._note("kept" if told == self._assignment else "forgotten", generation)

    def _note(self, event: str, generation: int) -> None:
        at_ns = time.monotonic_ns()
        self._journal.write(Assigned(at_ns, event, generation, self._member_id, [self._first]))

    def _commit_in(self, generation: int, offset: int | None = None) -> None:
        """A transaction with this position, or with one that is its number."""
        number, outcome, told = self._begin(), "unknown", None
        offset = number if offset is None else offset
        request = txn_offset_commit_request(
            self._producer, (self._group, generation, self._member_id), *self._first, offset
        )
        position = [CommitEntry(*self._first, offset, offset)]
        self._journal.write(
            Commit(number, time.monotonic_ns(), generation, self._member_id, position, number)
        )
        try:
            self._ask(ADD_OFFSETS, add_offsets_request(self._producer, self._group))
            told = self._refusal(COMMIT_OFFSETS, request)
            if told is None:
                self._look()
                self._journal.write(TxnCommit(number, time.monotonic_ns()))
            self._ask(END_TXN, end_txn_request(self._producer, commit=told is None))
            outcome = "committed" if told is None else "aborted"
        except Refused as refused:
            told = str(refused)
            self._producer = Producer(self._producer.transactional_id)
        self._over(number, outcome, None)
        self._journal.write(Committed(number, time.monotonic_ns(), AS_COMMIT[outcome], told))

    def _look(self) -> None:
        """Where the group stands, by what no open transaction may change."""
        invoke_ns, offset, told = time.monotonic_ns(), None, None
        try:
            answer = self._ask(STABLE_OFFSETS, stable_offset_request(self._group, *self._first))
            offset = read_stable_offset(answer, self._first[0])
        except Refused as refused:
            told = str(refused)
        outcome = "ok" if told is None else "fail" if told == UNSTABLE else "info"
        now_ns = time.monotonic_ns()
        self._journal.write(
            CommitRead(invoke_ns, now_ns, outcome, told, None, None, *self._first, offset)
        )

    def _intrude(self) -> None:
        """Commit as nobody."""
        number = OF_NOBODY + self._txns
        position = [CommitEntry(*self._first, number, number)]
        begun = Commit(number, time.monotonic_ns(), NO_GENERATION, "", position)
        self._journal.write(begun)
        request = commit_request(self._group, self._first[0], [self._first[1]], number)
        try:
            told = self._refusal(OFFSET_COMMIT, request)
            outcome = "ok" if told is None else "fail"
        except Refused as refused:
            outcome, told = "info", str(refused)
        self._journal.write(Committed(number, time.monotonic_ns(), outcome, told))

    def _refusal(self, api: tuple[int, int], request: bytes) -> str | None:
        """Why the position was refused, None if it was not. Refused as any other answer says."""
        try:
            self._ask(api, request)
        except Refused as refused:
            if str(refused) in PUT_OUT:
                return str(refused)
            raise
        return None


def send_old_positions(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """`zombie_offsets` times; what does not come so far is not made good."""
    zombie = Zombie(spec, journal)
    for _ in range(int(spec.workload.options.get("zombie_offsets", "0"))):
        if stop.asked():
            return
        with contextlib.suppress(Refused):
            zombie.haunt()
        stop.wait(EVERY_S)
    while not stop.asked():
        stop.wait(0.2)


if __name__ == "__main__":
    run_client(send_old_positions)
