"""Intermediate reads: a transaction read a record of another one, and its position is before a
later record of the same transaction, in one partition (G1b).

The last stable offset ends before the first record of an open transaction. That may be between two
records of a committed one, and fetches end anywhere. This is therefore counted and never a failure;
a reader that passes over the later record fails `fractured_read` and `poll_skip`."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import ALWAYS, Excuse
from urteil.harness.verify.guarantees.transactions.isolation import ADYA, edges, isolation_guarantee

GUARANTEE = isolation_guarantee(
    name="g1b",
    rank=82,
    about="a transaction read an intermediate state of another one",
    promise="What a transaction read of another one in a partition is the last that it wrote.",
    source=f"{ADYA}: G1b; KafkaConsumer, Reading Transactional Messages: read_committed readers "
    "read to the last stable offset, before the first open transaction",
    sub_kinds={
        "g1b": "a position between two records of one transaction in a partition",
    },
    details=(
        "A transaction read a record of another one, and its position in a partition lies between "
        "two records of that one. Counted, never a failure.",
    ),
    opportunities=edges("wr", "early"),
    excuses=(
        Excuse(
            when=ALWAYS,
            reason="the last stable offset may lie between two records of a transaction",
        ),
    ),
)
