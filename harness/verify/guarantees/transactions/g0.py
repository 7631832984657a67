"""Dirty writes: the records of two transactions lie in opposite orders in two partitions (G0).

Kafka does not isolate writes, so this is counted and never a failure."""

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

_MEANINGS = {
    "ww": "{left} wrote before {right}, at {place}",
    "wr": "{right} read what {left} wrote, {place}",
    "early": "{right} read what {left} had not committed yet, {place}",
    "rw": "{left} did not see what {right} wrote, {place}",
    "rt": "{left} ended before {right} began",
}


def cycles(condition: str) -> str:
    """The rows of `cycles` that fulfil a condition, as a guarantee's violations."""
    return f"""
SELECT kind AS sub_kind, p, off, at_ns, until_ns, n, txns, edges
FROM cycles WHERE {condition}"""


def edges(*kinds: str) -> str:
    """How many edges of these kinds there are."""
    names = ", ".join(f"'{kind}'" for kind in kinds)
    return f"SELECT COALESCE(SUM(edges), 0) AS n FROM graph WHERE kind IN ({names})"


def explain_cycle(row: Mapping[str, Any]) -> str:
    """The cycle of a row, edge by edge; of a long one only its transactions."""
    way = str(row["txns"]).split(" -> ")
    steps = [step.split(" ", 1) for step in str(row["edges"] or "").split(", ")]
    if len(steps) != len(way) - 1:
        return f"{row['n']} transactions form a cycle, {row['txns']}, at {place(row)}."
    parts = [
        _MEANINGS[kind].format(left=left, right=right, place="".join(where))
        for left, right, (kind, *where) in zip(way, way[1:], steps, strict=False)
    ]
    return f"{'; '.join(parts)}."


GUARANTEE = Guarantee(
    name="g0",
    rank=80,
    about="transactions overwrite each other: their records lie in opposite orders",
    promise="Transactions can be put in an order in which each follows those that it overwrites.",
    source=f"{ADYA}: G0; Kafka promises no isolation of writes",
    sub_kinds={
        "g0": "a cycle of overwritten records",
    },
    details=(
        "Records of transactions stand in opposite orders in two partitions. Counted, never a "
        "failure.",
    ),
    requires=(TRANSACTIONS,),
    occasion=Occasion.TRANSACTIONS,
    opportunities=edges("ww"),
    violations=cycles("cycles.kind = 'g0'"),
    excuses=(NOT_ISOLATED,),
    explain=explain_cycle,
    tie="finding.txns",
    needs=("txns", "sends"),
    reads=("cycles", "graph"),
    rests_on=("txns", "sends"),
    no_reference=DERIVED,
)
