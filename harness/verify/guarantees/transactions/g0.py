"""Dirty writes: the records of two transactions have opposite orders in two partitions (G0).

Kafka does not isolate writes, so this is counted and never a failure."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Occasion
from urteil.harness.verify.guarantees.transactions.isolation import (
    ADYA,
    NOT_ISOLATED,
    edges,
    isolation_guarantee,
)

GUARANTEE = isolation_guarantee(
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
    occasion=Occasion.TRANSACTIONS,
    opportunities=edges("ww"),
    excuses=(NOT_ISOLATED,),
    needs=("txns", "sends"),
    rests_on=("txns", "sends"),
)
