"""Read skew: a cycle of transactions in which one did not see what another wrote (G-single).

A transaction reads a slice of a log between two polls, which is not a snapshot. This is therefore
counted and never a failure."""

from __future__ import annotations

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.verify.guarantees.base import DERIVED, Guarantee, Occasion
from urteil.harness.verify.guarantees.transactions.g0 import SLICES, cycles, edges, explain_cycle

GUARANTEE = Guarantee(
    name="g_single",
    rank=100,
    about="a transaction missed a write of a transaction that it depends on",
    promise="A transaction that depends on another one sees all that the other one wrote.",
    source="Adya, Weak Consistency (1999): G-single; Kafka promises no snapshots",
    sub_kinds={
        "g_single": "a cycle with one missed write",
    },
    details=(
        "A transaction missed a write of another one that it depends on. Counted, never a failure.",
    ),
    requires=(TRANSACTIONS,),
    occasion=Occasion.READING_TRANSACTIONS,
    opportunities=edges("rw"),
    violations=cycles("cycles.kind = 'g_single'"),
    excuses=(SLICES,),
    explain=explain_cycle,
    tie="finding.txns",
    needs=("txns", "sends", "reads"),
    reads=("cycles", "graph"),
    rests_on=("txns", "sends", "reads"),
    no_reference=DERIVED,
)
