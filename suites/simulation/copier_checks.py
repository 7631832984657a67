"""The offsets that transactions commit (KIP-447).

The offset of a group is changed by the transactions of one copier, one after another, and each
commits a higher offset than the one before. The copier reads it after each transaction. An offset
of a transaction whose outcome is unknown may be returned or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from urteil.suites.simulation.coordinators import Coordinators
from urteil.suites.simulation.evidence import Evidence
from urteil.suites.simulation.history import StableRead, TxnCommit
from urteil.suites.simulation.transactions import TIMEOUT_MS

MIN_COUNT = 3
"""The least number of commits that are judged by whether none was accepted."""


def commit_register(evidence: Evidence) -> Iterator[str]:
    """A request for the stable offset returns none that an open transaction has replaced, and never
    one below the last committed offset."""
    begins_s = {(txn.client, txn.number): txn.begin_s for txn in evidence.history.txns}
    for read, committed in _reads(evidence):
        if read.within is not None:
            if read.complete_s < begins_s[read.client, read.within] + TIMEOUT_MS / 1000:
                yield (
                    f"{read.group} returned the stable offset {read.offset} at "
                    f"{read.complete_s:.3f} s, while transaction {read.within} of {read.client} "
                    f"was open, which had committed another one"
                )
        elif read.offset < committed:
            yield (
                f"{read.group} returned offset {read.offset} at {read.complete_s:.3f} s, after the "
                f"commit of {committed}"
            )


def offsets_not_atomic(evidence: Evidence) -> Iterator[str]:
    """The offset of an aborted transaction is not returned."""
    aborted = {
        (commit.group, commit.offset): commit.txn.number
        for commit in evidence.history.txn_commits
        if commit.txn.outcome == "aborted" and commit.txn.commit_s < 0
    }
    for read, _ in _reads(evidence):
        number = aborted.get((read.group, read.offset))
        if number is not None and read.within is None:
            yield (
                f"{read.group} returned offset {read.offset} of the aborted transaction {number} "
                f"at {read.complete_s:.3f} s"
            )


def rejected_offsets(evidence: Evidence) -> Iterator[str]:
    """Some commits of offsets in transactions are accepted."""
    commits = evidence.history.txn_commits
    if len(commits) >= MIN_COUNT and not any(commit.is_accepted for commit in commits):
        yield f"none of {len(commits)} commits of offsets in transactions was accepted"


def _reads(evidence: Evidence) -> Iterator[tuple[StableRead, int]]:
    """The answers of brokers that were the coordinator during the whole request, each with the
    highest offset that was committed before it."""
    coordinators = Coordinators(evidence)
    commits_of: dict[str, list[TxnCommit]] = defaultdict(list)
    for commit in evidence.history.txn_commits:
        commits_of[commit.group].append(commit)
    for read in evidence.history.stable_reads:
        leader, since_s = coordinators.at(read.complete_s)
        if read.node == leader and since_s <= read.invoke_s:
            committed = (
                commit.offset
                for commit in commits_of[read.group]
                if commit.is_accepted
                and commit.txn.outcome == "committed"
                and 0 <= commit.txn.end_s < read.invoke_s
            )
            yield read, max(committed, default=-1)
