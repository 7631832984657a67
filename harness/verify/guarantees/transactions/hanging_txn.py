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
SELECT answers.p, settings.txns_over_ns,
  MAX(CASE WHEN partitions.unclean_on = 1 OR partitions.lost_floor IS NOT NULL THEN 1
           ELSE 0 END) AS spoiled,
  MAX(CASE WHEN answers.kind = 'stable' THEN answers.offset END) AS stable,
  MAX(CASE WHEN answers.kind = 'latest' AND answers.complete_ns < settings.txns_over_ns
           THEN answers.offset END) AS latest,
  MAX(CASE WHEN answers.kind = 'stable' AND answers.invoke_ns > settings.txns_over_ns THEN 1
           ELSE 0 END) AS over,
  MAX(CASE WHEN answers.kind = 'stable' THEN answers.invoke_ns END) AS asked_ns
FROM answers JOIN partitions ON partitions.p = answers.p JOIN settings
  ON settings.txns_over_ns IS NOT NULL
WHERE answers.error IS NULL AND answers.offset >= 0
GROUP BY answers.p, settings.txns_over_ns
"""

_ASKED = f"""
FROM admin_ops JOIN settings ON settings.txns_over_ns IS NOT NULL
WHERE admin_ops.act = '{INITIALISE}'
  AND (admin_ops.outcome = 'ok'
       OR (admin_ops.outcome = 'fail' AND admin_ops.complete_ns > settings.txns_over_ns))
"""

_ANSWERED_OFFSETS = f"""
SELECT records.sent_p AS p, records.ack_off AS off, producer_ids.pid, transactions.begin_ns,
  transactions.tid,
  CASE WHEN partitions.unclean_on = 1 OR partitions.lost_floor IS NOT NULL THEN 1
       ELSE 0 END AS spoiled
FROM {OF_TXN}
JOIN (SELECT transactions.tid, MIN(records.pid) AS pid FROM {OF_TXN} WHERE records.pid >= 0
        GROUP BY transactions.tid
      HAVING MIN(records.pid) = MAX(records.pid)) producer_ids
        ON producer_ids.tid = transactions.tid
WHERE records.sent = 1 AND records.outcome = 'ok' AND records.ack_off >= partitions.log_start
  AND transactions.late = 0
  AND (records.log_slots > 0
    OR (partitions.clock_moved = 0 AND partitions.ends_ns + {STOPPING_NS} < transactions.begin_ns
        + partitions.delete_retention_ns))
"""
"""Records of transactions whose markers have to be there: the log has them still, or
delete.retention.ms has not passed."""

_UNMARKED = f"""
SELECT turns.p, MIN(turns.off) AS off, MIN(turns.begin_ns) AS at_ns,
  MAX(turns.begin_ns) AS until_ns, MIN(turns.tid) AS tid, MAX(turns.spoiled) AS spoiled
FROM (SELECT *, COALESCE(SUM(marker) OVER (PARTITION BY p, pid
          ORDER BY off, marker, begin_ns
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS turn,
        SUM(marker) OVER (PARTITION BY p, pid) AS markers
      FROM (SELECT p, pid, off, begin_ns, tid, spoiled, 0 AS marker
              FROM ({_ANSWERED_OFFSETS}) answered_offsets
            UNION ALL
            SELECT p, pid, off, NULL, NULL, 0, 1 FROM slots
            WHERE on_leader = 1 AND marks >= 2) events) turns
WHERE turns.marker = 0 AND turns.markers > 0
GROUP BY turns.p, turns.pid, turns.turn
HAVING MIN(turns.begin_ns) < MAX(turns.begin_ns)
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
SELECT SUM(opportunities.n) AS n FROM (
  SELECT COUNT(*) AS n FROM ({_ENDS}) stable_answers
    WHERE stable_answers.stable >= stable_answers.latest OR stable_answers.over = 1
  UNION ALL SELECT COUNT(*) AS n {_ASKED}) opportunities""",
    violations=f"""
SELECT 'open' AS sub_kind, stable_answers.p, stable_answers.stable AS off,
  stable_answers.txns_over_ns AS at_ns, stable_answers.asked_ns AS until_ns, stable_answers.latest,
  CAST(NULL AS STRING) AS tid,
  CASE WHEN stable_answers.spoiled = 1 THEN 1 ELSE {COORDINATOR} END AS spoiled
FROM ({_ENDS}) stable_answers WHERE stable_answers.over = 1
  AND stable_answers.stable < stable_answers.latest
UNION ALL
SELECT 'kept', CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), requests.invoke_ns, requests.complete_ns,
  CAST(NULL AS BIGINT), requests.subject, {COORDINATOR}
FROM (SELECT admin_ops.subject, admin_ops.outcome, admin_ops.invoke_ns,
        admin_ops.complete_ns {_ASKED}) requests
WHERE requests.outcome = 'fail'
UNION ALL
SELECT CASE WHEN cut_short = {FORGOTTEN} THEN 'forgotten' ELSE 'cut short' END, NULL, NULL,
  begin_ns, end_ns, NULL, tid, {COORDINATOR}
FROM txn_p WHERE cut_short > 0
UNION ALL
SELECT 'unmarked', p, off, at_ns, until_ns, NULL, tid, spoiled
FROM ({_UNMARKED}) open_transactions""",
    excuses=(SPOILED,),
    explain=_explain,
    tie="finding.latest, finding.tid",
    compares_times=True,
    host_load_excuses=True,
    needs=("txns", "offset_answers"),
    reads=(
        *("slots", "records", "partitions", "answers", "settings", "txn_p", "admin_ops"),
        *("partitions.clock_moved", "partitions.lost_floor", "partitions.unclean_on"),
    ),
    rests_on=("txns", "offset_answers", "admin_ops", "clients", "faults", "replicas", "sends"),
)
