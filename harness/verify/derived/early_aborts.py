"""Transactions that their coordinator ended before transaction.timeout.ms had passed.

The producer receives a fencing error. The coordinator had no reason if no other client uses the
transactional id, no fault acted since the producer was initialised or shortly before (a delayed
request may fence the producer), and the transaction is younger than its timeout, counted from
before it began. Only producers of client libraries are judged: producers of raw requests fence
themselves and have other timeouts. Raw producers are judged by another error: their transactional
id, which was valid a moment ago, is unknown. Libraries then obtain another producer id without an
error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from urteil.harness.clients.spec import transaction_timeout_ms
from urteil.harness.scenario import Scenario
from urteil.harness.verify.derived.impact import acting_interval
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import CUT_SHORT, FORGOTTEN

FENCING_ERRORS = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
UNKNOWN_ID = "error 49"
"""INVALID_PRODUCER_ID_MAPPING, as clients of raw requests record it."""
KINDS = ("txn", "copier", "late")
_MS_NS = 1_000_000
LATE_NS = 10_000 * _MS_NS
"""The time after healing of a network fault in which delayed requests may still arrive."""


def early_aborts(
    txns: Sequence[Row], clients: Sequence[Row], faults: Sequence[Row], scenario: Scenario
) -> dict[tuple[str, int, int], int]:
    """CUT_SHORT or FORGOTTEN by client, session and number of each such transaction."""
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
        and (txn["error"] == UNKNOWN_ID if _is_raw(txn, sole) else txn["error"] in FENCING_ERRORS)
        and None not in (txn["init_invoke_ns"], txn["begin_ns"], txn["end_ns"])
        and txn["end_ns"] - txn["begin_ns"] < timeout_ns
        and not any(acting_interval(fault).meets(_life(txn)) for fault in faults)
    }


def _is_raw(txn: Row, sole: Mapping[tuple[str, int], str]) -> bool:
    return sole[txn["client"], txn["session"]] == "late"


def _life(txn: Row) -> Interval:
    """The life of its producer, begun earlier by the time in which delayed requests may arrive."""
    return Interval(txn["init_invoke_ns"] - LATE_NS, txn["end_ns"])
