"""Cases of `rare_states/transactions.py`."""

from __future__ import annotations

from typing import Any

from tests.harness.verify.rare_states.made import Case, Made
from urteil.harness.verify.internal_topics import TRANSACTIONS_TOPIC

ALL = [1, 2, 3]


def transaction(**columns: Any) -> Made:
    """A transaction from 1 s to 9 s whose commit was requested at 6 s, with a record at 2 s."""
    times = {"begin_s": 1, "commit_invoke_s": 6, "end_s": 9, "init_invoke_s": 0, "init_s": 1}
    return Made().add("txns", **(times | columns)).send(2, client="t1", txn=1)


def elected(at_s: float) -> Made:
    """The same, with another leader of its partition from a time on."""
    return transaction().led(0, 1, ALL).led(at_s, 2, ALL)


def coordinated(at_s: float) -> Made:
    """The same, with another coordinator from a time on."""
    made = transaction().add("clients", client="t1", transactional_id="id")
    return made.coordinated(TRANSACTIONS_TOPIC, (0, 1), (at_s, 2))


def ended(control: str, at_s: float = 9, **columns: Any) -> Made:
    """The same, with its record and its marker on disk, the wall clock being CLOCK_MONOTONIC."""
    made = transaction(**columns).led(0, 1, ALL, wall_ms=0)
    return made.stored(0, transactional=True).marker(1, control, timestamp_ms=int(at_s * 1000))


def successor(init_s: float) -> Made:
    """The same, and another producer with its id that was initialised by then."""
    return transaction().add("txns", client="t2", begin_s=9, init_invoke_s=1.5, init_s=init_s)


CASES: dict[str, Case] = {
    "transaction_over_two_leaders": (elected(5), elected(1.5)),
    "coordinator_moved_in_transaction": (coordinated(5), coordinated(7)),
    "coordinator_moved_between_phases": (coordinated(7), coordinated(5)),
    "leader_changed_during_commit": (elected(7), elected(5)),
    "fenced_producer_wrote_again": (successor(1.8), successor(2.2)),
    "aborted_while_client_wrote": (ended("abort", 5), ended("abort", 7)),
    "unknown_commit_took_effect": (
        ended("commit", outcome="unknown"),
        ended("abort", outcome="unknown"),
    ),
    "unknown_commit_was_aborted": (
        ended("abort", outcome="unknown"),
        ended("abort", outcome="aborted"),
    ),
    "marker_in_later_epoch": (
        Made().stored(0, transactional=True).marker(1, "commit", leader_epoch=1),
        Made().stored(0, transactional=True).marker(1, "commit"),
    ),
    "two_producers_of_one_id": (
        transaction().add("txns", client="t2", begin_s=5, end_s=10),
        transaction().add("txns", client="t2", begin_s=10, end_s=11),
    ),
    "transaction_without_records": (
        transaction(txn=2, outcome="committed"),
        transaction(outcome="committed"),
    ),
    "transaction_open_for_ten_seconds": (
        transaction(end_s=11).led(0, 1, ALL),
        transaction(end_s=10).led(0, 1, ALL),
    ),
}
