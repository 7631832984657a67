"""Dirty writes: the records of two transactions lie in opposite orders in two partitions (G0).

Kafka does not isolate writes, so this is counted and never a failure."""

from __future__ import annotations

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


def cycles(condition: str) -> str:
    """The rows of `cycles` that fulfil a condition, as a guarantee's violations."""
    return f"""
SELECT kind AS sub_kind, p, off, at_ns, until_ns, n, txns
FROM cycles WHERE {condition}"""


def edges(*kinds: str) -> str:
    """How many edges of these kinds there are."""
    names = ", ".join(f"'{kind}'" for kind in kinds)
    return f"SELECT COALESCE(SUM(edges), 0) AS n FROM graph WHERE kind IN ({names})"


GUARANTEE = Guarantee(
    name="g0",
    rank=80,
    about="transactions overwrite each other: their records lie in opposite orders",
    promise="Transactions can be put in an order in which each follows those that it overwrites.",
    source="Adya, Liskov, O'Neil, Generalized Isolation Level Definitions (2000): G0; Kafka "
    "promises no isolation of writes",
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
    explain=lambda row: (
        f"Each writes before the next one in some partition: {row['txns']}; one such place is "
        f"{place(row)}."
    ),
    tie="finding.txns",
    needs=("txns", "sends"),
    reads=("cycles", "graph"),
    rests_on=("txns", "sends"),
    no_reference=DERIVED,
)
