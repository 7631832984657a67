"""Isolation: guarantees that a cycle of transactions violates (rows of the table `cycles`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.verify.guarantees.base import (
    ALWAYS,
    DERIVED,
    Excuse,
    Guarantee,
    Occasion,
    place,
)

NOT_ISOLATED = Excuse(when=ALWAYS, reason="Kafka does not isolate the writes of transactions")
SLICES = Excuse(when=ALWAYS, reason="polls are slices of a log, not snapshots")
ADYA = "Adya, Liskov, O'Neil, Generalized Isolation Level Definitions (2000)"

EVIDENCE = ("txns", "sends", "reads")

_MEANINGS = {
    "ww": "{left} wrote before {right}, at {place}",
    "wr": "{right} read what {left} wrote, {place}",
    "early": "{right} read what {left} had not committed yet, {place}",
    "rw": "{left} did not see what {right} wrote, {place}",
    "rt": "{left} ended before {right} began",
}


def isolation_guarantee(
    *,
    name: str,
    rank: int,
    about: str,
    promise: str,
    source: str,
    sub_kinds: Mapping[str, str],
    details: tuple[str, ...],
    opportunities: str,
    not_counted: tuple[str, ...] = (),
    occasion: Occasion = Occasion.READING_TRANSACTIONS,
    excuses: tuple[Excuse, ...] = (),
    compares_times: bool = False,
    needs: tuple[str, ...] = EVIDENCE,
    rests_on: tuple[str, ...] = EVIDENCE,
) -> Guarantee:
    """A guarantee that is violated by each cycle of its sub-kinds, which are kinds of cycles."""
    kinds = ", ".join(f"'{kind}'" for kind in sub_kinds)
    return Guarantee(
        name=name,
        rank=rank,
        about=about,
        promise=promise,
        source=source,
        sub_kinds=sub_kinds,
        details=details,
        not_counted=not_counted,
        requires=(TRANSACTIONS,),
        occasion=occasion,
        opportunities=opportunities,
        violations=f"""
SELECT kind AS sub_kind, p, off, at_ns, until_ns, n, txns, edges
FROM cycles WHERE cycles.kind IN ({kinds})""",
        excuses=excuses,
        explain=explain_cycle,
        tie="finding.txns",
        compares_times=compares_times,
        needs=needs,
        reads=("cycles", "graph"),
        rests_on=rests_on,
        no_reference=DERIVED,
    )


def edges(*kinds: str) -> str:
    """A query of the number of edges of these kinds."""
    names = ", ".join(f"'{kind}'" for kind in kinds)
    return f"SELECT COALESCE(SUM(edges), 0) AS n FROM graph WHERE kind IN ({names})"


def explain_cycle(row: Mapping[str, Any]) -> str:
    """The cycle of a row, edge by edge; of a long one only its transactions."""
    transactions = str(row["txns"]).split(" -> ")
    steps = [step.split(" ", 1) for step in str(row["edges"] or "").split(", ")]
    if len(steps) != len(transactions) - 1:
        return f"{row['n']} transactions form a cycle, {row['txns']}, at {place(row)}."
    parts = [
        _MEANINGS[kind].format(left=left, right=right, place="".join(where))
        for left, right, (kind, *where) in zip(transactions, transactions[1:], steps, strict=False)
    ]
    return f"{'; '.join(parts)}."
