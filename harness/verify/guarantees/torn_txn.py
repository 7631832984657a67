"""A transaction is in the log as a whole, or not at all.

Judged by the final passes of readers of committed records: markers are not written at one moment,
so that passes before the end may see a part. A transaction whose commit was never asked for must
not be seen; of one whose commit did not return well either all or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, place

LATE_END = "the end of an earlier transaction may have arrived in it (KAFKA-17754)"
SPOILED = "settings or faults took committed records, or markers, from every replica in sync"

OF_TXN = """txn_p t JOIN vals v ON v.client = t.client AND v.session = t.session AND v.txn = t.txn
JOIN parts q ON q.p = v.sent_p"""

PERMITTED = f"""CASE WHEN x.late = 1 THEN '{LATE_END}'
  WHEN x.spoiled = 1 THEN '{SPOILED}' END"""

SPOILS = "MAX(CASE WHEN t.begin_ns < q.spoilt_ns THEN 1 ELSE 0 END)"

COORDINATOR = """
(SELECT COALESCE(MAX(CASE WHEN k.topic = '__transaction_state' THEN k.spoiled END), MIN(k.spoiled))
 FROM (SELECT q.topic, CASE WHEN q.unclean_on = 1 OR q.lost_floor IS NOT NULL THEN 1 ELSE 0 END
         AS spoiled FROM parts q) k)
"""
"""Whether the coordinator may have lost what it knew: another topic's settings are no excuse."""

_SUMMED = f"""
SELECT t.client, t.session, t.txn, t.tid, t.fate, t.outcome, t.begin_ns, t.end_ns,
  MAX(t.late) AS late, COUNT(*) AS records, COUNT(DISTINCT v.sent_p) AS parts,
  SUM(v.rc_shown) AS shown,
  SUM(CASE WHEN v.outcome = 'ok' AND v.rc_whole = 0 THEN 1 ELSE 0 END) AS missing,
  MIN(CASE WHEN v.outcome = 'ok' AND v.rc_whole = 0
      THEN v.sent_p * {SLOT} + COALESCE(v.ack_off, v.first_slot % {SLOT}, 0) END) AS missing_slot,
  MIN(CASE WHEN v.rc_shown = 1 THEN v.shown_slot END) AS shown_slot,
  {SPOILS} AS spoiled
FROM {OF_TXN}
WHERE v.sent = 1 AND v.rc_asked = 1 AND q.compacted = 0
GROUP BY t.client, t.session, t.txn, t.tid, t.fate, t.outcome, t.begin_ns, t.end_ns
"""

_TOLD = {
    "missing": "was committed, yet {missing} of its {records} records are in no complete pass, "
    "the first at {place}",
    "visible": "was not committed, nor was that ever asked for, yet {shown} of its {records} "
    "records are visible, the first at {place}",
    "partly": "is there in part: {shown} of its {records} records are visible and {missing} are "
    "not, the first at {place}",
}


def _explain(row: Mapping[str, Any]) -> str:
    told = _TOLD[row["sub_kind"]].format(**row, place=place(row))
    return f"Transaction {row['txn']} of {row['client']} ({row['tid']}) {told}."


GUARANTEE = Guarantee(
    name="torn_txn",
    about="a part of a transaction is visible, or one that was aborted is",
    promise="All the messages of a transaction, across partitions, will be visible to consumers in "
    "read_committed mode, or none of them.",
    source="KIP-98: Transactional Guarantees; KafkaProducer, transactional.id",
    opportunities=f"SELECT COUNT(*) AS n FROM ({_SUMMED}) t",
    violations=f"""
SELECT CASE WHEN t.fate = 'committed' THEN 'missing' WHEN t.fate = 'aborted' THEN 'visible'
    ELSE 'partly' END AS sub_kind,
  COALESCE(CASE WHEN t.fate <> 'aborted' THEN t.missing_slot END, t.shown_slot) DIV {SLOT} AS p,
  COALESCE(CASE WHEN t.fate <> 'aborted' THEN t.missing_slot END, t.shown_slot) % {SLOT} AS off,
  t.begin_ns AS at_ns, t.end_ns AS until_ns, t.client, t.session, t.txn, t.tid, t.outcome,
  t.records, t.parts, t.shown, t.missing, t.late, t.spoiled
FROM ({_SUMMED}) t
WHERE (t.fate = 'committed' AND t.missing > 0) OR (t.fate = 'aborted' AND t.shown > 0)
  OR (t.fate = 'unknown' AND t.missing > 0 AND t.shown > 0)""",
    permitted=PERMITTED,
    explain=_explain,
    needs=("txns", "sends", "passes"),
    rests_on=("txns", "sends", "reads", "replicas", "passes", "clients", "logs"),
    sub_kinds=("missing", "visible", "partly"),
    tie="j.client, j.txn",
)
