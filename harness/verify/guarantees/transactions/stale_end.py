"""The end for readers of committed records has passed every transaction that is complete.

When a coordinator accepts a producer's next transaction, the markers of the one before are
replicated in all partitions. An answer to ListOffsets under read_committed that was requested
later, in the same leader epoch or a newer one, may therefore not end at a record of that
transaction. A lookup that does so is a cycle: the transaction ended before it, and it missed the
transaction's record. The end of the commit alone proves nothing, since markers follow it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.chaos.capabilities import END_AFTER_WATERMARK, TRANSACTIONS
from urteil.harness.verify.guarantees.base import DERIVED, Guarantee, Occasion, place
from urteil.harness.verify.guarantees.transactions.isolation import explain_cycle
from urteil.harness.verify.guarantees.transactions.torn_txn import EXCUSES


def _explain(row: Mapping[str, Any]) -> str:
    broker = "a broker" if row["node"] is None else f"broker {row['node']}"
    return (
        f"In leader epoch {row['leader_epoch']} {broker} returned {place(row)} as the end for "
        f"readers of committed records, after that record's transaction was complete: "
        f"{explain_cycle(row)}"
    )


GUARANTEE = Guarantee(
    name="stale_end",
    rank=88,
    about="the end for readers of committed records lies before a complete transaction",
    promise="The last stable offset is the first offset of an open transaction, or else the high "
    "watermark.",
    source="KafkaConsumer, Reading Transactional Messages; KIP-98: Discussion on Unavailability; "
    "KIP-207",
    sub_kinds={
        "end": "an answer to ListOffsets ends at a record of a transaction that was complete",
    },
    details=(
        "A transaction is complete once a send of a later transaction of the same client session "
        "was acknowledged.",
        "Judged are answers with a leader epoch that ends at an acknowledged record exactly.",
    ),
    not_counted=(
        "Answers in a leader epoch older than the newest one at that time: a deposed leader.",
        "Readers' positions: polls may return what was fetched earlier.",
    ),
    requires=(TRANSACTIONS, END_AFTER_WATERMARK),
    occasion=Occasion.STABLE_LOOKUPS,
    opportunities="SELECT COUNT(*) AS n FROM answers WHERE answers.kind = 'stable' "
    "AND answers.error IS NULL AND answers.leader_epoch >= 0",
    violations="""
SELECT 'end' AS sub_kind, stale_ends.p, stale_ends.off, stale_ends.at_ns, stale_ends.until_ns,
  2 AS n, stale_ends.txns, stale_ends.edges, stale_ends.node, stale_ends.leader_epoch,
  stale_ends.known_ns, transactions.late,
  CASE WHEN transactions.begin_ns < partitions.losses_ns THEN 1 ELSE 0 END AS spoiled
FROM stale_ends JOIN partitions ON partitions.p = stale_ends.p
JOIN txn_p transactions ON transactions.client = stale_ends.client
  AND transactions.session = stale_ends.session AND transactions.txn = stale_ends.txn""",
    excuses=EXCUSES,
    explain=_explain,
    tie="finding.txns, finding.at_ns",
    compares_times=True,
    excused_by_times=True,
    needs=("txns", "sends", "offset_answers"),
    reads=("answers", "stale_ends", "txn_p", "partitions", "partitions.losses_ns"),
    rests_on=("txns", "sends", "offset_answers", "states"),
    subjects=("txn_p",),
    no_reference=DERIVED,
)
