"""A transaction is in the log completely, or not at all.

Judged by the final passes of readers of committed records: markers are not written at one moment,
so that earlier passes may see a part. A transaction whose commit was never requested must not be
visible. If the commit of a transaction did not succeed, either all its records are visible or
none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.permitted_deviations import Permit
from urteil.harness.verify.guarantees.base import SLOT, Excuse, Guarantee, Occasion, place
from urteil.harness.verify.guarantees.losses import LOST_RECORDS
from urteil.harness.verify.reference import (
    FinalPass,
    Partition,
    Place,
    Row,
    SmallHistory,
    Violation,
    acknowledged_offset,
    chosen_partition,
    places_of,
)

LATE_END = Excuse(
    when="violation.late = 1",
    reason="the end of an earlier transaction may have arrived in it (KAFKA-17754)",
    permits=(Permit.LATE_ENDS,),
)
SPOILED = Excuse(
    when="violation.spoiled = 1",
    reason="settings or faults destroyed committed records, or markers, on every replica in sync",
    permits=LOST_RECORDS,
)
EXCUSES = (LATE_END, SPOILED)

OF_TXN = """txn_p transactions JOIN records ON records.client = transactions.client
  AND records.session = transactions.session AND records.txn = transactions.txn
JOIN partitions ON partitions.p = records.sent_p"""

SPOILS = "MAX(CASE WHEN transactions.begin_ns < partitions.losses_ns THEN 1 ELSE 0 END)"

COORDINATOR = """
(SELECT COALESCE(MAX(CASE WHEN topic = '__transaction_state' THEN spoiled END), MIN(spoiled))
 FROM (SELECT topic, CASE WHEN unclean_on = 1 OR lost_floor IS NOT NULL THEN 1 ELSE 0 END
         AS spoiled FROM partitions) topics)
"""
"""Whether the coordinator may have lost its state: settings of other topics do not excuse it."""

_HAS_PASSES = (
    "CASE WHEN partitions.has_log = 0 AND records.n_reads > 0 THEN records.read_asked "
    "ELSE records.rc_asked END"
)
_PLACE = f"records.sent_p * {SLOT} + COALESCE(records.first_slot % {SLOT}, records.ack_off, 0)"

_RECORDS = f"""
SELECT transactions.client, transactions.session, transactions.txn, transactions.tid,
  transactions.fate, transactions.outcome, transactions.begin_ns, transactions.end_ns,
  transactions.late, records.sent_p, {_PLACE} AS slot, records.shown_slot, records.unserved,
  records.rc_asked, records.rc_shown, partitions.has_log, records.seen_slots,
  CASE WHEN transactions.begin_ns < partitions.losses_ns THEN 1 ELSE 0 END AS spoiled,
  CASE WHEN records.outcome = 'ok' AND {_HAS_PASSES} = 1 AND records.rc_shown = 0 THEN 1
       ELSE 0 END AS missing,
  CASE WHEN records.outcome = 'fail' THEN 0 ELSE records.rc_lacks END AS lacks,
  BIT_OR(records.given) OVER (PARTITION BY transactions.client, transactions.session,
                              transactions.txn, records.sent_p) AS delivered
FROM {OF_TXN}
WHERE records.sent = 1 AND partitions.compacted = 0
"""
"""The records of transactions. Each bit stands for a pass: `lacks` has the passes over the record's
place that did not deliver it, `delivered` those that delivered a record of its transaction in its
partition. A pass that is in both tore the transaction."""

_SUMMED = f"""
SELECT txn_records.client, txn_records.session, txn_records.txn, txn_records.tid, txn_records.fate,
  txn_records.outcome, txn_records.begin_ns, txn_records.end_ns, MAX(txn_records.late) AS late,
  COUNT(*) AS records, COUNT(DISTINCT txn_records.sent_p) AS parts,
  SUM(txn_records.rc_shown) AS shown, SUM(txn_records.missing) AS missing,
  SUM(CASE WHEN txn_records.has_log = 1 OR txn_records.seen_slots > 0 THEN txn_records.missing
           ELSE 0 END) AS withheld,
  MIN(CASE WHEN txn_records.missing = 1 THEN txn_records.slot END) AS missing_slot,
  SUM(CASE WHEN (txn_records.lacks & txn_records.delivered) <> 0 THEN 1 ELSE 0 END) AS torn,
  MIN(CASE WHEN (txn_records.lacks & txn_records.delivered) <> 0
           THEN txn_records.slot END) AS torn_slot,
  SUM(CASE WHEN txn_records.lacks <> 0 AND txn_records.rc_shown = 1 AND txn_records.unserved = 0
           THEN 1 ELSE 0 END) AS between,
  SUM(CASE WHEN txn_records.lacks <> 0 THEN 1 ELSE 0 END) AS lacking,
  MIN(CASE WHEN txn_records.lacks <> 0 THEN txn_records.slot END) AS lacking_slot,
  MIN(CASE WHEN txn_records.rc_shown = 1 THEN txn_records.shown_slot END) AS shown_slot,
  MAX(txn_records.spoiled) AS spoiled
FROM ({_RECORDS}) txn_records
GROUP BY txn_records.client, txn_records.session, txn_records.txn, txn_records.tid,
  txn_records.fate, txn_records.outcome, txn_records.begin_ns, txn_records.end_ns
HAVING SUM(txn_records.rc_asked) > 0
"""

_KINDS = f"""
SELECT sums.*, CASE WHEN sums.fate = 'aborted' THEN CASE WHEN sums.shown > 0 THEN 'visible' END
    WHEN sums.missing > 0 AND sums.shown > 0 AND sums.fate = 'unknown' THEN 'partly'
    WHEN sums.fate = 'committed' AND sums.missing > 0 AND (sums.shown > 0 OR sums.withheld > 0)
    THEN 'missing'
    WHEN sums.torn > 0 THEN 'in one pass'
    WHEN sums.fate = 'committed' AND sums.between > 0 THEN 'between passes' END AS sub_kind
FROM ({_SUMMED}) sums
"""
"""Without logs, a transaction without any visible record is lost (`lost_write`), and a record that
only some passes deliver has vanished (`vanished_read`)."""

_DEFECTS = {
    "missing": "was committed, yet no complete pass of a reader of committed records delivered "
    "{missing} of its {records} records, the first at {place}",
    "visible": "was not committed, nor was its commit requested, yet {shown} of its {records} "
    "records are visible, the first at {place}",
    "partly": "is visible in part: {shown} of its {records} records are visible and {missing} are "
    "not, the first at {place}",
    "in one pass": "is visible in part: a complete pass over {topic}-{partition} delivered some of "
    "its {records} records, and passed over others, the first at {place}",
    "between passes": "was committed, yet some complete passes of readers of committed records "
    "delivered {lacking} of its {records} records and others did not, the first at {place}",
}


def _explain(row: Mapping[str, Any]) -> str:
    defect = _DEFECTS[row["sub_kind"]].format(**row, place=place(row))
    return f"Transaction {row['txn']} of {row['client']} ({row['tid']}) {defect}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Final passes of readers of committed records deliver all records of a transaction or none."""
    for txn in history.txns:
        records = [
            _Record(send, history.partition_at[send.topic, chosen_partition(send)])
            for send in history.sends_in(txn)
        ]
        records = [record for record in records if not record.partition.is_compacted]
        violation = _find_torn(history, txn, records)
        if violation is not None:
            yield violation


@dataclass(eq=False)
class _Record:
    """A record of a transaction, and the final passes of readers of committed records that had to
    deliver it."""

    send: Row
    partition: Partition

    @property
    def history(self) -> SmallHistory:
        return self.partition.history

    @property
    def place(self) -> Place:
        """Its place in the log, else that of its acknowledgement."""
        logged = places_of(self.history.records_of[self.send.value_id])
        offset = logged[0][2] if logged else acknowledged_offset(self.send)
        return self.partition.topic, self.partition.partition, offset or 0

    @cached_property
    def read_places(self) -> list[Place]:
        """The places where it was read, or is on a disk."""
        value = self.send.value_id
        return places_of(self.history.reads_of[value] + self.history.copies_of[value])

    @cached_property
    def due_passes(self) -> dict[Place, list[FinalPass]]:
        """The passes over each place of the record, and of its acknowledgement."""
        return self.history.committed_passes_over(self.send)

    def is_in(self, at: Place, final_pass: FinalPass) -> bool:
        return final_pass.has_delivered(at[2], self.send.value_id)

    @cached_property
    def is_shown(self) -> bool:
        return any(
            self.is_in(at, final_pass)
            for at, some in self.due_passes.items()
            for final_pass in some
        )

    @cached_property
    def lacking_passes(self) -> list[FinalPass]:
        """The passes over the record that delivered it nowhere; empty if all passes over one of its
        places delivered it there."""
        if self.send.outcome == "fail":
            return []
        due = self.due_passes
        if any(
            all(self.is_in(at, final_pass) for final_pass in passes) for at, passes in due.items()
        ):
            return []
        value = self.send.value_id
        return [
            final_pass
            for at, passes in due.items()
            for final_pass in passes
            if (at in self.read_places or not self.read_places)
            if not any(read.value_id == value for read in final_pass.reads)
        ]

    @property
    def is_missing(self) -> bool:
        return bool(self.send.outcome == "ok" and self.due_passes and not self.is_shown)

    @property
    def is_unserved(self) -> bool:
        """Whether a final pass of other readers lacks it."""
        value = self.send.value_id
        return any(
            not final_pass.has_delivered(offset, value)
            for topic, partition, offset in places_of(self.history.records_of[value])
            for final_pass in self.history.partition_at[topic, partition].owing_passes(
                offset, value
            )
        )


def _find_torn(history: SmallHistory, txn: Row, records: list[_Record]) -> Violation | None:
    if not any(record.due_passes for record in records):
        return None
    fate = history.fate_of(records[0].send)
    shown = [record for record in records if record.is_shown]
    missing = [record for record in records if record.is_missing]
    torn = [
        record
        for record in records
        if any(
            _delivers_another(final_pass, record, records) for final_pass in record.lacking_passes
        )
    ]
    between = [
        record
        for record in records
        if record.lacking_passes and record.is_shown and not record.is_unserved
    ]
    kinds = {
        "visible": shown if fate == "aborted" else [],
        "partly": missing if shown and fate == "unknown" else [],
        "missing": missing if fate == "committed" else [],
        "in one pass": torn if fate != "aborted" else [],
        "between passes": [record for record in records if record.lacking_passes]
        if between and fate == "committed"
        else [],
    }
    for kind, torn_slots in kinds.items():
        if torn_slots:
            is_shown = kind == "visible"
            place = min(slot.read_places[0] if is_shown else slot.place for slot in torn_slots)
            return Violation(kind, *place, None)
    return None


def _delivers_another(final_pass: FinalPass, record: _Record, records: list[_Record]) -> bool:
    """Whether a pass over a partition delivered a record of the transaction there."""
    values = {other.send.value_id for other in records if other.partition is record.partition}
    return any(read.value_id in values for read in final_pass.reads)


GUARANTEE = Guarantee(
    name="torn_txn",
    rank=10,
    about="a transaction is visible in part, or although it was aborted",
    promise="All the messages of a transaction, across partitions, will be visible to consumers in "
    "read_committed mode, or none of them.",
    source="KIP-98: Transactional Guarantees; KafkaProducer, transactional.id",
    sub_kinds={
        "missing": "a committed transaction lacks a record in all passes",
        "visible": "an aborted one shows one",
        "partly": "one of unknown fate shows some and lacks others",
        "in one pass": "one pass delivers a part of a transaction",
        "between passes": "some passes deliver a committed record and others do not",
    },
    details=("Judged in the final passes of readers of committed records.",),
    not_counted=(
        "Live readers: markers are not written at one moment.",
        "Offsets that no such pass covers.",
        "Without logs, transactions that are missing as a whole (`lost_write`), and records that "
        "some passes deliver and others do not (`vanished_read`).",
    ),
    unused_evidence=(
        "Markers of different kinds in several partitions of a compacted topic, and live "
        "reads of a part: markers are not written at one moment, and the other records may "
        "be cleaned.",
    ),
    requires=(TRANSACTIONS,),
    occasion=Occasion.TRANSACTIONS,
    opportunities=f"SELECT COUNT(*) AS n FROM ({_SUMMED}) sums",
    violations=f"""
SELECT sub_kind, slot DIV {SLOT} AS p, slot % {SLOT} AS off, begin_ns AS at_ns,
  end_ns AS until_ns, client, session, txn, tid, outcome, records, parts, shown,
  missing, lacking, late, spoiled
FROM (SELECT *, CASE sub_kind WHEN 'visible' THEN shown_slot
          WHEN 'in one pass' THEN torn_slot WHEN 'between passes' THEN lacking_slot
          ELSE missing_slot END AS slot
      FROM ({_KINDS}) judged_txns WHERE sub_kind IS NOT NULL) torn_txns""",
    excuses=EXCUSES,
    explain=_explain,
    tie="finding.client, finding.txn",
    compares_times=True,
    needs=("txns", "sends", "passes"),
    reads=("records", "partitions", "txn_p", "partitions.losses_ns"),
    rests_on=("txns", "sends", "reads", "replicas", "passes", "clients", "logs"),
    reference=_reference,
)
