"""Write skew: a cycle of transactions of which at least two did not see what the next one wrote
(G2-item).

Kafka's transactions are not serializable. This is therefore counted and never a failure."""

from __future__ import annotations

from urteil.harness.verify.guarantees.transactions.isolation import (
    ADYA,
    SLICES,
    edges,
    isolation_guarantee,
)

GUARANTEE = isolation_guarantee(
    name="g2_item",
    rank=110,
    about="transactions missed each other's writes in a cycle",
    promise="Transactions can be put in an order in which each sees what those before it wrote.",
    source=f"{ADYA}: G2-item; Kafka promises no snapshots",
    sub_kinds={
        "g2_item": "a cycle with several missed writes",
    },
    details=(
        "A cycle with at least two missed writes, one for each group of transactions that depend "
        "on each other in a circle. Counted, never a failure.",
    ),
    opportunities=edges("rw"),
    excuses=(SLICES,),
)
