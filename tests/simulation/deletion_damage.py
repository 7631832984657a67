"""Evidence of deleted records, of offsets of groups without members, of offsets that transactions
commit, and of repeated batches; and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.simulation.group_damage import lead
from urteil.suites.simulation.evidence import Evidence, Promises
from urteil.suites.simulation.history import (
    NO_OFFSET,
    Answer,
    Deletion,
    ExpectedOffset,
    OffsetRead,
    RejectedRepetition,
    StableRead,
    Txn,
    TxnCommit,
)
from urteil.suites.simulation.simple_groups import leader_epoch_of

PLACE = ("t", 0)
DELETED = ExpectedOffset("d", NO_OFFSET, 50.1, 1, 50.0)
KEPT = ExpectedOffset("k", 3, 50.0)
EXPIRED = ExpectedOffset("e", NO_OFFSET, 50.0)


def delete(evidence: Evidence) -> None:
    """The first two records are deleted, on both replicas."""
    evidence.promises = Promises({"retention.ms": "604800000"}, ends_s=70.0)
    evidence.history.deleted_places.add(PLACE)
    evidence.history.deletions.append(Deletion(*PLACE, 2, 50.0, 50.1))
    evidence.replicas[PLACE] = [
        replace(log, log_start=2, batches=log.batches[2:]) for log in evidence.replicas[PLACE]
    ]
    evidence.final[PLACE] = [read for read in evidence.final[PLACE] if read.offset >= 2]
    evidence.begins["final", PLACE] = 2
    before = Answer("d", *PLACE, "before", 1, 1, 51.0, 51.1, 0, "OFFSET_OUT_OF_RANGE")
    evidence.history.answers.append(before)
    evidence.glimpses.append(replace(evidence.glimpses[-1], at_s=60.0, log_start=2))


def keep_a_deleted_record_on_a_replica(evidence: Evidence) -> None:
    replicas = evidence.replicas[PLACE]
    delete(evidence)
    evidence.replicas[PLACE][1] = replace(replicas[1], log_start=1, batches=replicas[1].batches[1:])


def keep_a_deleted_record_on_the_leader(evidence: Evidence) -> None:
    delete(evidence)
    evidence.glimpses.append(replace(evidence.glimpses[-1], log_start=1))


def serve_a_deleted_record(evidence: Evidence) -> None:
    delete(evidence)
    evidence.history.answers[-1] = replace(evidence.history.answers[-1], error=None)


def read_offset(
    evidence: Evidence, expected: ExpectedOffset, offset: int, epoch: int | None = None
) -> None:
    known = leader_epoch_of(offset) if epoch is None else epoch
    evidence.history.offset_reads.append(OffsetRead(expected, offset, known, 1, 65.0, 65.1))


def read_offsets(evidence: Evidence) -> None:
    """One offset remains, one was deleted, and one has expired."""
    lead(evidence, 0.0, 1)
    read_offset(evidence, KEPT, 3)
    read_offset(evidence, DELETED, NO_OFFSET)
    read_offset(evidence, EXPIRED, NO_OFFSET)


def return_a_deleted_offset(evidence: Evidence) -> None:
    read_offsets(evidence)
    read_offset(evidence, DELETED, 7)


def return_an_expired_offset(evidence: Evidence) -> None:
    read_offsets(evidence)
    read_offset(evidence, EXPIRED, 7)


def lose_an_offset(evidence: Evidence) -> None:
    read_offsets(evidence)
    read_offset(evidence, KEPT, NO_OFFSET)


def lose_the_epoch_of_an_offset(evidence: Evidence) -> None:
    read_offsets(evidence)
    read_offset(evidence, KEPT, 3, epoch=-1)


def txn(number: int, *, commits: bool) -> Txn:
    end_s = 10.0 * number + 5
    return Txn(
        "x", 1, number, "x", 9, 0, 10.0 * number, 1.0, 2.0, commit_s=end_s if commits else -1.0,
        end_s=end_s + 0.1, outcome="committed" if commits else "aborted",
    )  # fmt: skip


def read_stable(evidence: Evidence, offset: int, at_s: float, within: int | None = None) -> None:
    evidence.history.stable_reads.append(StableRead("x", "g", within, offset, 1, at_s, at_s + 0.1))


def copy(evidence: Evidence) -> None:
    """Transaction 1 commits offset 1, and transaction 2, which is aborted, offset 2."""
    lead(evidence, 0.0, 1)
    history = evidence.history
    for number, commits in ((1, True), (2, False)):
        own = txn(number, commits=commits)
        history.txns.append(own)
        history.txn_commits.append(TxnCommit("x", "g", own, number, own.begin_s, True))
    read_stable(evidence, 1, 16.0)
    read_stable(evidence, 1, 26.0)


def return_an_unstable_offset(evidence: Evidence) -> None:
    copy(evidence)
    read_stable(evidence, 1, 22.0, within=2)


def return_the_offset_before(evidence: Evidence) -> None:
    copy(evidence)
    read_stable(evidence, NO_OFFSET, 27.0)


def return_an_aborted_offset(evidence: Evidence) -> None:
    copy(evidence)
    read_stable(evidence, 2, 27.0)


def reject_all_offsets(evidence: Evidence) -> None:
    copy(evidence)
    own = evidence.history.txns[1]
    evidence.history.stable_reads.clear()
    evidence.history.txn_commits = [TxnCommit("x", "g", own, n, 20.0) for n in range(4)]


def reject_a_repetition(evidence: Evidence) -> None:
    """The leader rejects a batch that it acknowledged."""
    send = evidence.history.sends[1]
    evidence.history.rejected_repetitions.append(RejectedRepetition(send, 1, 9.0, 9.1))


DAMAGE: dict[Callable[[Evidence], None], str] = {
    keep_a_deleted_record_on_a_replica: "undeleted_records",
    keep_a_deleted_record_on_the_leader: "undeleted_records",
    serve_a_deleted_record: "undeleted_records",
    return_a_deleted_offset: "commit_register",
    return_an_expired_offset: "commit_register",
    lose_an_offset: "commit_register",
    lose_the_epoch_of_an_offset: "commit_register",
    return_an_unstable_offset: "commit_register",
    return_the_offset_before: "commit_register",
    return_an_aborted_offset: "offsets_not_atomic",
    reject_all_offsets: "no_progress",
    reject_a_repetition: "duplicate",
}
