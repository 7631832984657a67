"""Transactions that their coordinator ended before transaction.timeout.ms had passed.

The producer learns of it by a fencing error. No coordinator had a reason where no other client
has the transactional id, no fault acted since it was initialised or shortly before (a late request
of an earlier time may fence the producer), and the transaction is younger than its timeout, counted
from before it began. Only producers of client libraries are judged: those of raw requests fence
themselves and have other timeouts. Raw producers are judged for something else: an error that their
transactional id, which was valid a moment ago, is unknown. Libraries then take another producer id
without an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from urteil.harness.clients.spec import transaction_timeout_ms
from urteil.harness.scenario import Scenario
from urteil.harness.verify.derived.impact import Stretch, acting_stretch
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import CUT_SHORT, FORGOTTEN

SHUT_OUT = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
UNKNOWN_ID = "error 49"
"""INVALID_PRODUCER_ID_MAPPING, as clients of raw requests note it."""
KINDS = ("txn", "copier", "late")
_MS_NS = 1_000_000
LATE_NS = 10_000 * _MS_NS
"""How long after a fault of the network was healed what it held back may still arrive."""


def early_aborts(
    txns: Sequence[Row], clients: Sequence[Row], faults: Sequence[Row], scenario: Scenario
) -> dict[tuple[str, int, int], int]:
    """Client, session and number of each, with CUT_SHORT or FORGOTTEN."""
    shared = Counter(row["transactional_id"] for row in clients)
    sole = {
        (row["client"], row["session"]): row["kind"]
        for row in clients
        if row["kind"] in KINDS and shared[row["transactional_id"]] == 1
    }
    timeout_ns = transaction_timeout_ms(scenario.workload) * _MS_NS
    return {
        (txn["client"], txn["session"], txn["txn"]): FORGOTTEN if _is_raw(txn, sole) else CUT_SHORT
        for txn in txns
        if (txn["client"], txn["session"]) in sole
        and (txn["error"] == UNKNOWN_ID if _is_raw(txn, sole) else txn["error"] in SHUT_OUT)
        and None not in (txn["init_invoke_ns"], txn["begin_ns"], txn["end_ns"])
        and txn["end_ns"] - txn["begin_ns"] < timeout_ns
        and not any(acting_stretch(fault).meets(_life(txn)) for fault in faults)
    }


def _is_raw(txn: Row, sole: Mapping[tuple[str, int], str]) -> bool:
    return sole[txn["client"], txn["session"]] == "late"


def _life(txn: Row) -> Stretch:
    """Of its producer, and how long before it what was asked for may still arrive."""
    return Stretch(txn["init_invoke_ns"] - LATE_NS, txn["end_ns"])
