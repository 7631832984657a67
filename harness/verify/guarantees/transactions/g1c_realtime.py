"""Information flows with time: no cycle of reads of committed records and of the order in time.

A transaction that ended before another one began comes before it, and one whose record was read
comes before its reader: its commit was requested when the record was read. `g1c` has cycles of
reads alone, `precommitted_read` single reads that came too early."""

from __future__ import annotations

from urteil.harness.verify.guarantees.transactions.isolation import (
    ADYA,
    EVIDENCE,
    edges,
    isolation_guarantee,
)

GUARANTEE = isolation_guarantee(
    name="g1c_realtime",
    rank=92,
    about="a transaction read what depends on its own end",
    promise="In read_committed mode a transaction reads only what was committed before, so that "
    "information flows one way, and with time.",
    source=f"{ADYA}: G1c; KafkaConsumer, Reading Transactional Messages",
    sub_kinds={
        "g1c realtime": "a cycle of reads and of the order in time",
    },
    details=(
        "In the order in time, and in that of sessions, a transaction comes before those that "
        "began after its commit was acknowledged.",
    ),
    not_counted=("Readers of uncommitted records.", "Cycles of reads alone (`g1c`)."),
    opportunities=edges("wr"),
    compares_times=True,
    rests_on=(*EVIDENCE, "clients"),
)
