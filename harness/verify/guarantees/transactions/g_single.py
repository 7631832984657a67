"""Read skew: a cycle of transactions in which one did not see what another wrote (G-single).

A transaction reads a slice of a log between two polls, which is not a snapshot. This is therefore
counted and never a failure."""

from __future__ import annotations

from urteil.harness.verify.guarantees.transactions.isolation import (
    SLICES,
    edges,
    isolation_guarantee,
)

GUARANTEE = isolation_guarantee(
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
    opportunities=edges("rw"),
    excuses=(SLICES,),
)
