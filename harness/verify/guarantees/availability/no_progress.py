"""A cluster with a majority of its nodes continues to serve.

Judged only where the scenario declares that its settings survive its faults. These are crashes and
full isolations of a minority (ZooKeeper included), and one broker that cannot reach another while
the other can reach it (a follower that cannot fetch must leave the ISR). Each fault is judged
alone, on a complete cluster, from session timeout plus 1.5 x replica.lag.time.max.ms on, or from
the time at which a client abandons the old leader, if that is later. A client must have sent to the
partition during the last two seconds of that time.

After healing, with all replicas back, records for which two producers still wait must be
acknowledged, or other records of that partition. Also without faults, a partition whose replicas
are all in sync does not stop, and not all transactions fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.availability.pending_sends import (
    end_of_wait_ns,
    is_refused,
    plain_producers,
)
from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.limits import FOREVER_NS, REFUSED, WAITS
from urteil.harness.verify.reference import SmallHistory, Violation, subject_text

_WAIT_NS = 2_000_000_000

_BEGUN = "(SELECT ticks.p, MIN(ticks.first_ns) AS first_ns FROM ticks GROUP BY ticks.p)"
"""The first acknowledgement of each partition."""

_TRIED = f"""
FROM progress_in_faults progress JOIN {_BEGUN} first_acks ON first_acks.p = progress.p
  AND first_acks.first_ns < progress.begin_ns
JOIN (SELECT DISTINCT progress.n, progress.p
      FROM progress_in_faults progress JOIN write_attempts attempts
        ON attempts.p = progress.p AND attempts.first_ns <= progress.to_ns - {_WAIT_NS}
          AND attempts.last_ns >= progress.from_ns) attempted_faults
  ON attempted_faults.n = progress.n AND attempted_faults.p = progress.p
"""
"""Faults and partitions to which clients sent before the fault and at its end."""

_RESUMED = f"""
FROM (SELECT progress.*, COALESCE(acked_ticks.n, 0) AS beats,
        CASE WHEN progress.to_ns - progress.from_ns >= {_WAIT_NS}
             THEN COALESCE(waiting_clients.waiting, 0) ELSE 0 END
          AS waiting
      FROM progress_after_faults progress JOIN {_BEGUN} first_acks ON first_acks.p = progress.p
        AND first_acks.first_ns < progress.in_sync_ns
      LEFT JOIN (SELECT progress.p, COUNT(*) AS n FROM progress_after_faults progress JOIN ticks
                   ON ticks.p = progress.p AND ticks.last_ns >= progress.in_sync_ns
                     AND ticks.first_ns <= progress.to_ns
                 GROUP BY progress.p) acked_ticks ON acked_ticks.p = progress.p
      LEFT JOIN (SELECT progress.p, COUNT(DISTINCT records.client) AS waiting
                 FROM progress_after_faults progress JOIN records ON records.sent_p = progress.p
                 JOIN clients ON clients.client = records.client
                   AND clients.session = records.session AND clients.kind = 'producer'
                   AND clients.transactional_id IS NULL AND clients.end_ns >= progress.to_ns
                 WHERE records.invoke_ns <= progress.to_ns - {_WAIT_NS}
                   AND {WAITS} >= progress.from_ns AND NOT ({REFUSED})
                 GROUP BY progress.p) waiting_clients ON waiting_clients.p = progress.p) resumptions
WHERE (resumptions.beats > 0 OR resumptions.waiting > 1)
"""
"""Healed partitions that acknowledged records again, or for which two producers waited."""


_STOPPED = f"""
FROM (SELECT silences.p, silences.since_ns, silences.to_ns,
        COUNT(DISTINCT records.client) AS waiting
      FROM (SELECT progress.p, progress.to_ns, progress.bound_ns,
              GREATEST(progress.from_ns, COALESCE(MAX(ticks.last_ns), progress.from_ns)) AS since_ns
            FROM progress_without_faults progress LEFT JOIN ticks ON ticks.p = progress.p
              AND ticks.first_ns <= progress.to_ns
            GROUP BY progress.p, progress.from_ns, progress.to_ns, progress.bound_ns) silences
      JOIN records ON records.sent_p = silences.p
      JOIN clients ON clients.client = records.client AND clients.session = records.session
        AND clients.kind = 'producer' AND clients.transactional_id IS NULL
        AND clients.end_ns >= silences.since_ns + silences.bound_ns
      WHERE silences.to_ns - silences.since_ns >= silences.bound_ns
        AND records.invoke_ns <= silences.since_ns + {_WAIT_NS} AND {WAITS} >= silences.since_ns
        + silences.bound_ns AND NOT ({REFUSED})
      GROUP BY silences.p, silences.since_ns, silences.to_ns) standstills
WHERE standstills.waiting > 1
"""
"""Partitions without a fault for which two producers waited longer than the bound."""


def _explain(row: Mapping[str, Any]) -> str:
    place, fault = f"{row['topic']}-{row['partition']}", f"{row['fault']} on {row['targets']}"
    for_s = f"{float(row['silent_s']):.1f} s"
    if row["sub_kind"] == "transactions stopped":
        of = f" of group {row['grp']}" if row["grp"] else ""
        return (
            f"No transaction{of} ended as its client requested in {for_s}, when no fault acted and "
            f"every replica was in sync, although {row['waiting']} were tried."
        )
    if row["sub_kind"] == "stopped":
        return (
            f"{place} acknowledged nothing for {for_s}, in which no fault acted and every replica "
            f"was in sync, although {row['waiting']} producers waited for it."
        )
    if row["sub_kind"] == "not resumed":
        return (
            f"{place} acknowledged nothing in the {for_s} after {fault} was healed and every "
            f"replica was in sync again, although {row['waiting']} producers waited for it."
        )
    return (
        f"{place} acknowledged nothing for the last {for_s} of {fault}, although a majority was "
        "alive and the time to move leadership had passed."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A partition with senders acknowledges something late in a fault, after it and without one,
    and transactions that are tried again and again do not all fail."""
    plain = plain_producers(history)
    for partition in history.partitions:
        acks_ns = [send.complete_ns for send in partition.sends if send.outcome == "ok"]
        first_ns = min(acks_ns, default=FOREVER_NS)
        waits = [
            (send, send.invoke_ns, end_of_wait_ns(history, send))
            for send in partition.sends
            if not is_refused(send)
        ]
        for due in partition.derived_rows("progress_in_faults"):
            has_sender = any(
                begin_ns <= due.to_ns - _WAIT_NS and end_ns >= due.from_ns
                for _, begin_ns, end_ns in waits
            )
            has_ack = any(due.from_ns <= at_ns <= due.to_ns for at_ns in acks_ns)
            if first_ns < due.begin_ns and has_sender and not has_ack:
                yield partition.violation("stalled", None, None, due.fault, due.from_ns)
        for due in partition.derived_rows("progress_after_faults"):
            until_ns = due.to_ns - _WAIT_NS
            senders = {
                send.client
                for send, begin_ns, end_ns in waits
                if begin_ns <= until_ns and end_ns >= due.from_ns and until_ns >= due.from_ns
                if plain.get((send.client, send.session), -1) >= due.to_ns
            }
            has_ack = any(due.in_sync_ns <= at_ns <= due.to_ns for at_ns in acks_ns)
            if first_ns < due.in_sync_ns and len(senders) > 1 and not has_ack:
                yield partition.violation("not resumed", None, None, due.fault, due.in_sync_ns)
        for due in partition.derived_rows("progress_without_faults"):
            since_ns = max([due.from_ns, *(at_ns for at_ns in acks_ns if at_ns <= due.to_ns)])
            limit_ns = since_ns + due.bound_ns
            senders = {
                send.client
                for send, begin_ns, end_ns in waits
                if begin_ns <= since_ns + _WAIT_NS and end_ns >= limit_ns
                if plain.get((send.client, send.session), -1) >= limit_ns
            }
            if due.to_ns >= limit_ns and len(senders) > 1:
                yield partition.violation("stopped", None, None, since_ns)
    for due in history.derived_rows("transaction_progress"):
        least = 3 if due.clients > 1 else 6
        if not due.succeeded and due.failed >= least:
            subject = subject_text(due.from_ns, due.grp)
            yield Violation("transactions stopped", subject=subject)


GUARANTEE = Guarantee(
    name="no_progress",
    rank=10,
    about="no acknowledgement during a fault that the settings promise to survive",
    promise="With N replicas and min.insync.replicas of M, a partition stays available for writes "
    "through the failure of N-M brokers, once leadership has moved.",
    source="Kafka documentation, 4.7 Replication: Availability and Durability Guarantees",
    sub_kinds={
        "stalled": "no acknowledgement during a fault, after the time to move leadership",
        "not resumed": "no acknowledgement after healing, although two producers waited",
        "stopped": (
            "for that time and 5 s more it acknowledged nothing although no fault acted, every "
            "replica was in sync, and two plain producers waited"
        ),
        "transactions stopped": (
            "in such a time no transaction ended as its client had requested, though two clients "
            "tried three or more, or one tried six. Transactions that move one group's offsets "
            "and others are judged apart. Fenced clients do not count"
        ),
    },
    details=(
        "During a fault: a partition with traffic acknowledged nothing from session timeout + 1.5 "
        "x replica.lag.time.max.ms + 1 s after the fault's begin until its end. The wait is at "
        "least the client's request timeout.",
        "After the last fault: it acknowledged nothing from healing with full ISRs until its "
        "producers ended, at least session timeout + request timeout + 5 s later, though two "
        "plain producers waited.",
    ),
    not_counted=(
        "Scenarios without `survives`.",
        "Faults other than these, alone and on a complete cluster, with at least 2 s left: crash "
        "or shutdown of a minority, failed log directories of a minority, isolation of one broker "
        "from brokers and ZooKeeper, and a one-way cut from a broker to another.",
        "After the last fault, times in which a quota was set.",
        "Partitions to which no client was sending in time: sends of killed clients and sends "
        "rejected for their content do not count.",
        "Deleted topics.",
    ),
    opportunities=f"""SELECT SUM(opportunities.n) AS n FROM (SELECT COUNT(*) AS n {_TRIED}
      UNION ALL SELECT COUNT(*) AS n {_RESUMED}
      UNION ALL SELECT COUNT(*) FROM progress_without_faults progress
      JOIN {_BEGUN} first_acks ON first_acks.p = progress.p AND first_acks.first_ns < progress.to_ns
      UNION ALL SELECT COUNT(*) FROM transaction_progress progress) opportunities""",
    violations=f"""
SELECT 'stalled' AS sub_kind, attempts.p, CAST(NULL AS BIGINT) AS off, attempts.from_ns AS at_ns,
  attempts.to_ns AS until_ns, attempts.fault, attempts.targets,
  CAST(attempts.to_ns - attempts.from_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS silent_s,
  CAST(NULL AS BIGINT) AS waiting, CAST(NULL AS STRING) AS grp
FROM (SELECT progress.* {_TRIED}) attempts
WHERE NOT EXISTS (SELECT 1 FROM ticks WHERE ticks.p = attempts.p
                    AND ticks.last_ns >= attempts.from_ns
                  AND ticks.first_ns <= attempts.to_ns)
UNION ALL
SELECT 'not resumed', resumptions.p, CAST(NULL AS BIGINT), resumptions.in_sync_ns,
  resumptions.to_ns, resumptions.fault, resumptions.targets,
  CAST(resumptions.to_ns - resumptions.in_sync_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE),
  resumptions.waiting, NULL
{_RESUMED} AND resumptions.beats = 0
UNION ALL
SELECT 'stopped', standstills.p, CAST(NULL AS BIGINT), standstills.since_ns, standstills.to_ns,
  CAST(NULL AS STRING), CAST(NULL AS STRING),
  CAST(standstills.to_ns - standstills.since_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE),
  standstills.waiting, NULL {_STOPPED}
UNION ALL
SELECT 'transactions stopped', CAST(NULL AS INT), NULL, from_ns, to_ns, NULL, NULL,
  CAST(to_ns - from_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE), CAST(failed AS BIGINT), grp
FROM transaction_progress WHERE succeeded = 0 AND failed > 2 AND (clients > 1 OR failed > 5)""",
    explain=_explain,
    tie="finding.fault, finding.targets, finding.grp",
    compares_times=True,
    host_load_excuses=True,
    needs=("sends",),
    reads=(
        *("records", "write_attempts", "ticks", "killed", "clients", "progress_in_faults"),
        *("progress_after_faults", "progress_without_faults", "transaction_progress"),
    ),
    rests_on=("sends", "faults", "states", "clients"),
    subjects=(
        *("progress_in_faults", "progress_after_faults"),
        *("progress_without_faults", "transaction_progress"),
    ),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.fault, violation.at_ns, violation.grp)",
)
