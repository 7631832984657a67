"""Circular information flow: each of several transactions read what the previous one wrote
(G1c).

A cycle of reads alone is a violation. A cycle that needs a reader of uncommitted records, or the
order of writes, is only counted: such readers have no such promise, and Kafka does not isolate
writes."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Excuse
from urteil.harness.verify.guarantees.transactions.isolation import (
    ADYA,
    EVIDENCE,
    NOT_ISOLATED,
    edges,
    isolation_guarantee,
)

GUARANTEE = isolation_guarantee(
    name="g1c",
    rank=90,
    about="transactions read each other's records in a cycle",
    promise="In read_committed mode a transaction reads only what was committed before, so that "
    "information flows one way.",
    source=f"{ADYA}: G1c; KafkaConsumer, Reading Transactional Messages",
    sub_kinds={
        "g1c": "a cycle of reads of committed records",
        "g1c uncommitted": "a cycle with a reader of uncommitted records",
        "g1c with writes": "a cycle that needs the order of writes, too",
    },
    details=("Transactions have read each other's records in a circle.",),
    not_counted=(
        "Circles that need the order of writes, too (permitted: Kafka does not isolate writes).",
        "Circles through a reader of uncommitted records (permitted).",
    ),
    opportunities=edges("wr", "early"),
    excuses=(
        NOT_ISOLATED.where("violation.sub_kind = 'g1c with writes'"),
        Excuse(
            when="violation.sub_kind = 'g1c uncommitted'",
            reason="readers of uncommitted records are promised no more",
        ),
    ),
    rests_on=(*EVIDENCE, "clients"),
)
