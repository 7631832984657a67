"""No transaction stays open: its coordinator aborts it after its timeout, and not before.

Judged at the end of the run, when all producers have ended and all faults are healed. After the
transaction timeout, the coordinator's check interval and 10 s, the last stable offset must have
reached the earlier high watermark. By then each transactional id must be available again as
well: a coordinator that has not completed a transaction blocks its successors, whatever the logs
hold.

`cut short`: harness/verify/derived/early_aborts.py. `unmarked`: while a log holds records of a
transaction, and for delete.retention.ms, it holds the marker too, also in a compacted topic.
Without the marker a new reader would see the transaction as open again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.evidence.acts import INITIALISE
from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.guarantees.transactions.torn_txn import COORDINATOR, OF_TXN, SPOILED
from urteil.harness.verify.limits import FORGOTTEN, STOPPING_NS

_ENDS = """
SELECT a.p, z.txns_over_ns,
  MAX(CASE WHEN q.unclean_on = 1 OR q.lost_floor IS NOT NULL THEN 1 ELSE 0 END) AS spoiled,
  MAX(CASE WHEN a.kind = 'stable' THEN a.offset END) AS stable,
  MAX(CASE WHEN a.kind = 'latest' AND a.complete_ns < z.txns_over_ns THEN a.offset END) AS latest,
  MAX(CASE WHEN a.kind = 'stable' AND a.invoke_ns > z.txns_over_ns THEN 1 ELSE 0 END) AS over,
  MAX(CASE WHEN a.kind = 'stable' THEN a.invoke_ns END) AS asked_ns
FROM answers a JOIN parts q ON q.p = a.p JOIN settings z ON z.txns_over_ns IS NOT NULL
WHERE a.error IS NULL AND a.offset >= 0
GROUP BY a.p, z.txns_over_ns
"""

_ASKED = f"""
FROM admin_ops o JOIN settings z ON z.txns_over_ns IS NOT NULL
WHERE o.act = '{INITIALISE}'
  AND (o.outcome = 'ok' OR (o.outcome = 'fail' AND o.complete_ns > z.txns_over_ns))
"""

_TOLD = f"""
SELECT v.sent_p AS p, v.ack_off AS off, i.pid, t.begin_ns, t.tid,
  CASE WHEN q.unclean_on = 1 OR q.lost_floor IS NOT NULL THEN 1 ELSE 0 END AS spoiled
FROM {OF_TXN}
JOIN (SELECT t.tid, MIN(v.pid) AS pid FROM {OF_TXN} WHERE v.pid >= 0 GROUP BY t.tid
      HAVING MIN(v.pid) = MAX(v.pid)) i ON i.tid = t.tid
WHERE v.sent = 1 AND v.outcome = 'ok' AND v.ack_off >= q.log_start AND t.late = 0
  AND (v.log_slots > 0
    OR (q.clock_moved = 0 AND q.ends_ns + {STOPPING_NS} < t.begin_ns + q.delete_retention_ns))
"""
"""Records of transactions whose markers have to be there: the log has them still, or
delete.retention.ms has not passed."""

_UNMARKED = f"""
SELECT u.p, MIN(u.off) AS off, MIN(u.begin_ns) AS at_ns, MAX(u.begin_ns) AS until_ns,
  MIN(u.tid) AS tid, MAX(u.spoiled) AS spoiled
FROM (SELECT e.*, COALESCE(SUM(e.marker) OVER (PARTITION BY e.p, e.pid
          ORDER BY e.off, e.marker, e.begin_ns
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS turn,
        SUM(e.marker) OVER (PARTITION BY e.p, e.pid) AS markers
      FROM (SELECT k.p, k.pid, k.off, k.begin_ns, k.tid, k.spoiled, 0 AS marker FROM ({_TOLD}) k
            UNION ALL
            SELECT s.p, s.pid, s.off, NULL, NULL, 0, 1 FROM slots s
            WHERE s.on_leader = 1 AND s.marks >= 2) e) u
WHERE u.marker = 0 AND u.markers > 0
GROUP BY u.p, u.pid, u.turn
HAVING MIN(u.begin_ns) < MAX(u.begin_ns)
"""
"""Transactions of one producer between which the final leader has no marker, though it has others
of it."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "kept":
        return (
            f"The transactional id {row['tid']} could not be had again: its coordinator was still "
            "not done with the last transaction, though every transaction's timeout passed long "
            "ago."
        )
    if row["sub_kind"] == "cut short":
        return (
            f"A transaction of {row['tid']} was aborted by its coordinator, which fenced its "
            f"producer after {(row['until_ns'] - row['at_ns']) / 1e9:.1f} s, before "
            "transaction.timeout.ms had passed."
        )
    if row["sub_kind"] == "forgotten":
        return (
            f"A producer that had just been initialised with the transactional id {row['tid']} "
            "began a transaction, and its coordinator had lost the id."
        )
    if row["sub_kind"] == "unmarked":
        return (
            f"A transaction of {row['tid']} had a record at {place(row)}, and a later one of it "
            "had one too, but the log no longer has a marker between them: a new reader cannot "
            "know that the first has ended."
        )
    return (
        f"The last stable offset of {row['topic']}-{row['partition']} stays at {row['off']}, below "
        f"the end {row['latest']}, although every transaction's timeout passed long ago."
    )


GUARANTEE = Guarantee(
    name="hanging_txn",
    rank=40,
    about="a transaction never ended, which holds back the last stable offset, or ended too early",
    promise="A transaction that lasts longer than transaction.timeout.ms is aborted by its "
    "coordinator; one that does not is ended by its producer.",
    source="Kafka documentation, Producer Configs: transaction.timeout.ms; KIP-664",
    sub_kinds={
        "open": (
            "the last stable offset is still below the high watermark when, after the last "
            "transaction and the last fault, transaction.timeout.ms, the coordinators' interval "
            "and 10 s have passed"
        ),
        "kept": (
            "at that time the coordinator still answers that the transaction before has not ended"
        ),
        "cut short": (
            "a writer or copier was fenced, though its transaction had lasted less than "
            "transaction.timeout.ms"
        ),
        "forgotten": (
            "the coordinator did not know the transactional id of a producer that had just been "
            "initialised (workloads with `rests`)"
        ),
        "unmarked": (
            "the final leader's log has no marker between records of two transactions of one "
            "producer, though it still has the first one's records, or delete.retention.ms has "
            "not passed"
        ),
    },
    not_counted=(
        "`cut short` for shared transactional ids, for producers in whose time a fault acted, and "
        "for clients of raw requests. `forgotten` is judged for these alone.",
        "`unmarked` for producers without any marker in the log, and for cleaned records where a "
        "clock was moved.",
        "Transactions of which an unclean election or a disk may have destroyed a part, in "
        "`__transaction_state` too; losses of other topics are no excuse.",
        "Coordinators that do not answer.",
    ),
    requires=(TRANSACTIONS,),
    opportunities=f"""
SELECT SUM(y.n) AS n FROM (
  SELECT COUNT(*) AS n FROM ({_ENDS}) e WHERE e.stable >= e.latest OR e.over = 1
  UNION ALL SELECT COUNT(*) AS n {_ASKED}) y""",
    violations=f"""
SELECT 'open' AS sub_kind, e.p, e.stable AS off, e.txns_over_ns AS at_ns, e.asked_ns AS until_ns,
  e.latest, CAST(NULL AS STRING) AS tid,
  CASE WHEN e.spoiled = 1 THEN 1 ELSE {COORDINATOR} END AS spoiled
FROM ({_ENDS}) e WHERE e.over = 1 AND e.stable < e.latest
UNION ALL
SELECT 'kept', CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), d.invoke_ns, d.complete_ns,
  CAST(NULL AS BIGINT), d.subject, {COORDINATOR}
FROM (SELECT o.subject, o.outcome, o.invoke_ns, o.complete_ns {_ASKED}) d
WHERE d.outcome = 'fail'
UNION ALL
SELECT CASE WHEN x.cut_short = {FORGOTTEN} THEN 'forgotten' ELSE 'cut short' END, NULL, NULL,
  x.begin_ns, x.end_ns, NULL, x.tid, {COORDINATOR}
FROM txn_p x WHERE x.cut_short > 0
UNION ALL
SELECT 'unmarked', m.p, m.off, m.at_ns, m.until_ns, NULL, m.tid, m.spoiled
FROM ({_UNMARKED}) m""",
    excuses=(SPOILED,),
    explain=_explain,
    tie="j.latest, j.tid",
    compares_times=True,
    host_load_excuses=True,
    needs=("txns", "offset_answers"),
    reads=(
        *("slots", "vals", "parts", "answers", "settings", "txn_p", "admin_ops"),
        *("parts.clock_moved", "parts.lost_floor", "parts.unclean_on"),
    ),
    rests_on=("txns", "offset_answers", "admin_ops", "clients", "faults", "replicas", "sends"),
)
