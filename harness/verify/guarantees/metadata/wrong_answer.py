"""Brokers respond according to their settings and to what they acknowledged before.

A client of the workload sends requests about its own groups, topics and transactions, which no
other client uses. It repeats each request until the response is correct, for at most ten seconds.
Requests during a fault, or less than five seconds after its healing, are not judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion
from urteil.harness.verify.reference import Row, SmallHistory, Violation, subject_text

_LONG_NS = 5_000_000_000

_UNDISTURBED = f"""
FROM accesses LEFT JOIN windows
  ON accesses.complete_ns > windows.begin_ns AND accesses.invoke_ns - {_LONG_NS} < windows.end_ns
WHERE accesses.outcome IN ('right', 'wrong') AND windows.n IS NULL
"""


def _explain(row: Mapping[str, Any]) -> str:
    brokers = "The brokers" if row["node"] < 0 else f"Broker {row['node']}"
    seconds = (row["until_ns"] - row["at_ns"]) / 1e9
    return f"{brokers} gave a wrong answer for {seconds:.1f} s to {row['subject']}: {row['told']}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No request is answered wrong to the end, except beside a fault."""
    for row in history.accesses:
        is_disturbed = any(
            row.complete_ns > fault.begin_ns and row.invoke_ns < fault.end_ns + _LONG_NS
            for fault in history.derived_rows("windows")
        )
        if row.outcome == "wrong" and not is_disturbed:
            yield Violation("answer", subject=access_subject(row))


def access_subject(row: Row) -> str:
    """The subject of the violation that a wrong answer is."""
    return subject_text(row.node, row.subject, row.invoke_ns)


GUARANTEE = Guarantee(
    name="wrong_answer",
    rank=50,
    about="a broker's answer contradicts its settings or an earlier acknowledgement",
    promise="What is set, created, changed or rejected is so for every client, at every broker.",
    source="Kafka documentation, 3 Configuration and 4 Design; KIP-62, KIP-74, KIP-101, KIP-227, "
    "KIP-345, KIP-394, KIP-447, KIP-951; Kafka protocol guide",
    sub_kinds={
        "answer": "the answer stayed wrong for ten seconds",
    },
    details=(
        "An examiner's question was answered wrong for ten seconds, or not answered for twenty, "
        "or a preparation of it was rejected so long.",
    ),
    not_counted=("Questions while a fault acted, or less than five seconds after its healing.",),
    occasion=Occasion.KNOWN_ANSWERS,
    opportunities=f"SELECT COUNT(*) AS n {_UNDISTURBED}",
    violations=f"""
SELECT 'answer' AS sub_kind, CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off,
  accesses.invoke_ns AS at_ns, accesses.complete_ns AS until_ns, accesses.node, accesses.subject,
  accesses.error AS told
{_UNDISTURBED} AND accesses.outcome = 'wrong'""",
    explain=_explain,
    tie="finding.node, finding.subject",
    compares_times=True,
    host_load_excuses=True,
    needs=("accesses",),
    reads=("windows", "accesses"),
    rests_on=("accesses", "faults"),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.node, violation.subject, violation.at_ns)",
)
