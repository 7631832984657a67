"""A lost update by position: a transaction read a partition, and appended to it behind a record of
another transaction that it had not read.

An append has no condition on the end of the log. This is therefore counted and never a failure."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import ALWAYS, Excuse
from urteil.harness.verify.guarantees.transactions.isolation import edges, isolation_guarantee

GUARANTEE = isolation_guarantee(
    name="lost_update",
    rank=84,
    about="a transaction appended behind a record that it had not read",
    promise="What a transaction appends to a partition that it read follows the last record that "
    "it read.",
    source="Berenson and others, A Critique of ANSI SQL Isolation Levels (1995): P4; Kafka's "
    "protocol: a Produce request names no offset",
    sub_kinds={
        "lost_update": "a record of another transaction between the position and the append",
    },
    details=(
        "A transaction appended to a partition that it had read, and a record of another one lies "
        "between its position and its last append. Counted, never a failure.",
    ),
    opportunities=edges("rw"),
    excuses=(Excuse(when=ALWAYS, reason="an append has no condition on the end of the log"),),
)
