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

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.evidence.acts import INITIALISE
from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.guarantees.transactions.torn_txn import COORDINATOR, OF_TXN, SPOILED
from urteil.harness.verify.limits import FORGOTTEN, STOPPING_NS
from urteil.harness.verify.reference import (
    Partition,
    Row,
    SmallHistory,
    Violation,
    acknowledged_offset,
    is_number,
    subject_text,
)

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

_INITIALISATIONS = f"""
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
"""Records of transactions whose markers must be in the log: the log still has the records, or
delete.retention.ms has not passed."""

_UNMARKED = f"""
SELECT by_marker.p, MIN(by_marker.off) AS off, MIN(by_marker.begin_ns) AS at_ns,
  MAX(by_marker.begin_ns) AS until_ns, MIN(by_marker.tid) AS tid, MAX(by_marker.spoiled) AS spoiled
FROM (SELECT *, COALESCE(SUM(marker) OVER (PARTITION BY p, pid
          ORDER BY off, marker, begin_ns
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS earlier_markers,
        SUM(marker) OVER (PARTITION BY p, pid) AS markers
      FROM (SELECT p, pid, off, begin_ns, tid, spoiled, 0 AS marker
              FROM ({_ANSWERED_OFFSETS}) answered_offsets
            UNION ALL
            SELECT p, pid, off, NULL, NULL, 0, 1 FROM slots
            WHERE on_leader = 1 AND marks >= 2) events) by_marker
WHERE by_marker.marker = 0 AND by_marker.markers > 0
GROUP BY by_marker.p, by_marker.pid, by_marker.earlier_markers
HAVING MIN(by_marker.begin_ns) < MAX(by_marker.begin_ns)
"""
"""Transactions of one producer between which the final leader has no marker, though it has other
markers of the producer."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "kept":
        return (
            f"The transactional id {row['tid']} could not be initialised again: its coordinator "
            "had not completed the last transaction, though every transaction's timeout passed "
            "long ago."
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


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """When every timeout has passed, no transaction holds a last stable offset back or keeps its
    id; no transaction was ended early; a log keeps the marker between two transactions of one
    producer."""
    timeouts_ns = history.run_settings.txns_over_ns
    ids = _producer_ids(history)
    for partition in history.partitions:
        yield from _unmarked_records(partition, ids)
        answers = [
            row
            for row in partition.derived_rows("answers")
            if timeouts_ns is not None and row.error is None and row.offset >= 0
        ]
        stable = [row for row in answers if row.kind == "stable"]
        ends = [
            row.offset for row in answers if row.kind == "latest" and row.complete_ns < timeouts_ns
        ]
        if ends and any(row.invoke_ns > timeouts_ns for row in stable):
            offset = max(row.offset for row in stable)
            if offset < max(ends):
                yield partition.violation("open", offset, None, timeouts_ns)
    for act in history.admin_ops:
        is_late = (
            timeouts_ns is not None
            and act.complete_ns is not None
            and act.complete_ns > timeouts_ns
        )
        if act.act == INITIALISE and act.outcome == "fail" and is_late:
            yield Violation("kept", subject=subject_text(act.subject, act.invoke_ns))
    for txn in history.derived_rows("txn_p"):
        if txn.early_abort:
            kind = "forgotten" if txn.early_abort == FORGOTTEN else "cut short"
            yield Violation(kind, subject=subject_text(txn.tid, txn.begin_ns))


def _producer_ids(history: SmallHistory) -> dict[str, set[int]]:
    """Transactional id to the producer ids of its records in final logs."""
    ids: dict[str, set[int]] = defaultdict(set)
    for send in history.sends:
        txn = _txn_of(history, send)
        if txn is not None:
            producer_ids = {row.producer_id for row in history.records_of[send.value_id]}
            ids[txn.transactional_id] |= {
                producer_id for producer_id in producer_ids if is_number(producer_id)
            }
    return ids


def _unmarked_records(partition: Partition, ids: dict[str, set[int]]) -> Iterator[Violation]:
    """Records of several transactions of one producer with the same number of markers before."""
    records_by_marker: dict[tuple[int, int], list[tuple[Row, Row]]] = defaultdict(list)
    for send in partition.sends:
        txn = _txn_of(partition.history, send)
        if (
            txn is None
            or txn.late_end_ns is not None
            or not _has_to_be_marked(partition, send, txn)
        ):
            continue
        known = ids[txn.transactional_id]
        if len(known) == 1:
            (producer,) = known
            markers = [
                row.offset
                for row in partition.log
                if row.control is not None and row.producer_id == producer
            ]
            earlier_markers = sum(offset < send.offset for offset in markers)
            if markers:
                records_by_marker[producer, earlier_markers].append((send, txn))
    for rows in records_by_marker.values():
        begins = {txn.begin_ns for _, txn in rows}
        if len(begins) > 1:
            tid = min(txn.transactional_id for _, txn in rows)
            offset = min(send.offset for send, _ in rows)
            yield partition.violation("unmarked", offset, None, tid, min(begins))


def _txn_of(history: SmallHistory, send: Row) -> Row | None:
    return history.txn_of.get((send.client, send.session, send.txn))


def _has_to_be_marked(partition: Partition, send: Row, txn: Row) -> bool:
    """Whether the log must still have the marker of an acknowledged record: it has the record, or
    delete.retention.ms has not passed."""
    part, offset = partition.part, acknowledged_offset(send)
    if txn.late_end_ns is not None or offset is None or offset < part.log_start:
        return False
    if partition.history.records_of[send.value_id]:
        return True
    is_young = part.ends_ns + STOPPING_NS < txn.begin_ns + (part.delete_retention_ns or 0)
    return bool(is_young and not part.clock_moved)


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
        "`__transaction_state` too; losses of other topics do not excuse it.",
        "Coordinators that do not answer.",
    ),
    requires=(TRANSACTIONS,),
    occasion=Occasion.OPEN_TRANSACTION,
    opportunities=f"""
SELECT SUM(opportunities.n) AS n FROM (
  SELECT COUNT(*) AS n FROM ({_ENDS}) stable_answers
    WHERE stable_answers.stable >= stable_answers.latest OR stable_answers.over = 1
  UNION ALL SELECT COUNT(*) AS n {_INITIALISATIONS}) opportunities""",
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
        admin_ops.complete_ns {_INITIALISATIONS}) requests
WHERE requests.outcome = 'fail'
UNION ALL
SELECT CASE WHEN early_abort = {FORGOTTEN} THEN 'forgotten' ELSE 'cut short' END, NULL, NULL,
  begin_ns, end_ns, NULL, tid, {COORDINATOR}
FROM txn_p WHERE early_abort > 0
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
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.tid, violation.at_ns)",
)
