"""The form in which every guarantee is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from urteil.chaos.capabilities import Capability
from urteil.harness.permitted_deviations import Permit
from urteil.harness.verify.reference import Reference

Explain = Callable[[Mapping[str, Any]], str]

SLOT = 1 << 48
"""A slot is partition number * SLOT + offset."""

EPOCH = 1 << 32
"""Packed columns: leader epoch * EPOCH + batch CRC, producer epoch * EPOCH + sequence."""

ALWAYS = "1 = 1"
"""The condition of an excuse that permits every violation: the guarantee counts, and never
fails."""

OTHER_DUE = """
(SELECT committed.p, committed.off, committed.slot, committed.bucket, committed.value_id,
   committed.grps
 FROM committed JOIN partitions ON partitions.p = committed.p AND partitions.compacted = 0
 UNION ALL
 SELECT slots.p, slots.off, slots.slot, slots.bucket, slots.value_id, slots.grps
 FROM keyed JOIN partitions ON partitions.p = keyed.p AND partitions.has_log = 1
 JOIN slots ON slots.value_id = keyed.value_id AND slots.p = keyed.p AND slots.off = keyed.off
   AND slots.on_leader = 1
 LEFT JOIN committed ON committed.slot = slots.slot AND committed.value_id = slots.value_id
 WHERE keyed.outcome = 'ok' AND keyed.off = keyed.last_off AND keyed.open_n = 0
   AND keyed.tombstone = 0 AND keyed.log_slots = 1
   AND (slots.visible = 1 OR committed.slot IS NOT NULL))
"""
"""Records of committed transactions, and the last values of keys in compacted topics, which no
cleaner of any replica may have removed."""

DUE = f"""
(SELECT slots.p, slots.off, slots.slot, slots.bucket, slots.value_id, slots.grps
 FROM slots JOIN partitions ON partitions.p = slots.p AND partitions.compacted = 0
 WHERE slots.visible = 1
 UNION ALL SELECT other_due.* FROM {OTHER_DUE} other_due)
"""
"""Records that every reader must receive, at any time since their commit."""

DERIVED = "The query selects rows of a table that plain Python derives from the small evidence."
"""Why most guarantees of availability and of the controller's tasks have no reference check."""

RECORDS = ("sends", "reads", "replicas", "logs", "passes", "states", "clients")
"""The evidence behind `slots` and `records`, on which most guarantees rest."""


class Occasion(Enum):
    """What a run must contain, beside sends and reads, for a guarantee to be judged at all."""

    FAILED_SENDS = "sends that certainly failed"
    UNCLEAN_ELECTION = "an unclean election"
    MIN_ISR = "an ISR below min.insync.replicas"
    TRANSACTIONS = "transactions"
    READING_TRANSACTIONS = "transactions that read what others write"
    OPEN_TRANSACTION = "a transaction that its producer left open"
    SHARED_TRANSACTIONAL_ID = "a transactional id that another producer takes over"
    PIPELINE = "an application that writes outputs"
    MIRROR = "a mirror of topics"
    QUORUM = "a KRaft quorum"
    DEPOSED_CONTROLLER = "a leader of a KRaft quorum with a successor, while no fault acts on it"
    MEMBER_EPOCHS = "a group of the protocol consumer (KIP-848)"
    SHARE_GROUP = "a share group"
    COMPACTION = "a compacted topic"
    RIGHTS = "clients with rights of their own"
    QUOTAS = "clients with quotas"
    KNOWN_ANSWERS = "a client that sends requests with known answers"
    SAMPLES = "brokers whose processes the lab watches"
    ADMINISTRATION = "tasks of administrators"
    CONTROLLER_TASKS = "brokers that leave or return, and give the controller a task"
    DEPARTURES = "members that leave their group or return"
    LIVE_READERS = "readers whose polls show that they live, while no fault acts"
    PROMPT_READERS = "readers that wait for new records for long, while no fault acts"
    UNDISTURBED_PRODUCERS = "producers whose sends are acknowledged for long, while no fault acts"
    WRITABLE = "a partition that nothing hinders for longer than it may stand still"
    LOGS = "the logs of brokers' disks"
    EARLIEST_LOOKUPS = "lookups of a log's start"
    STABLE_LOOKUPS = "transactions, and lookups of the end for readers of committed records"
    LIMITS = "limits of retention or of segments that are reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """A reason for which the settings or the faults of a run permit a violation."""

    when: str
    """An SQL condition over the violation's row (alias `violation`); `ALWAYS` permits each."""
    reason: str
    """The reason as reports show it."""
    reads: tuple[str, ...] = ()
    """Tables, and columns of derived tables (`partitions.unclean_on`), that the condition reads."""
    permits: tuple[Permit, ...] = ()
    """One of these permits is a precondition; none if only the protocol or the time decides."""

    def only_where(self, condition: str) -> Excuse:
        """The same excuse for rows that fulfil one more condition."""
        return replace(self, when=f"({condition}) AND ({self.when})")

    def where(self, condition: str) -> Excuse:
        """The same reason under another condition."""
        return replace(self, when=condition)


def only_where(condition: str, excuses: Iterable[Excuse]) -> tuple[Excuse, ...]:
    """The excuses for rows that fulfil one more condition."""
    return tuple(excuse.only_where(condition) for excuse in excuses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """One promise, and the queries that find its violations. All SQL is in Spark's dialect and
    portable."""

    name: str
    rank: int = 1000
    """Place among the guarantees of its subject in reports: the smallest first, then by name."""
    split_from: str = ""
    """The guarantee that had these sub-kinds in earlier runs. A scenario that requires them there
    requires this one."""
    about: str
    """What a violation is, in one line."""
    promise: str
    """The promise to the user, as a sentence."""
    source: str
    """Where Kafka makes the promise: documentation, KIP, class."""
    sub_kinds: Mapping[str, str]
    """Kind of violation to what it means."""
    details: tuple[str, ...] = ()
    """What exactly is judged, with bounds: a sentence each, for docs/reference."""
    not_counted: tuple[str, ...] = ()
    """What a healthy cluster does and no query counts: a phrase each, for docs/reference."""

    unused_evidence: tuple[str, ...] = ()
    """Unused evidence of further violations, with the reason: a sentence each, for
    docs/reference."""

    occasion: Occasion | None = None
    """What a run must contain for an opportunity; None where sends and reads suffice."""
    not_required: str = ""
    """Why no scenario may require it: a healthy broker gives it no opportunity in some runs."""
    opportunities: str
    """A query of one number `n`: the situations that could have shown a violation."""
    violations: str
    """A query with one row for each anomaly: at least sub_kind, p, off, at_ns, until_ns. Its other
    columns go into the finding's record."""
    excuses: tuple[Excuse, ...] = ()
    """Reasons that permit a violation; the first whose condition is true counts."""
    explain: Explain
    """The finding's sentence from its row, which then also has topic and partition."""
    tie: str = "finding.value_id"
    """SQL expressions that order findings of one place and time (alias `finding`), so that engines
    agree."""

    compares_times: bool = False
    """Whether a violation rests on times of several clients. Where these cannot be compared, it is
    unknown."""
    excused_by_times: bool = False
    """Whether a time decides if a violation is permitted: of the send, or of its answer. Where
    times cannot be compared, a violation is unknown if settings or faults may permit it."""
    copies_lost_elsewhere: bool = False
    """Whether another partition than the finding's may have lost the record's copies."""
    host_load_excuses: bool = False
    """Whether a slow host, or a lab that failed, may cause a violation without a fault of the
    cluster. There it is unknown."""
    failed_lab_excuses: bool = False
    """Whether a lab that failed may cause a violation, and a slow host cannot."""

    requires: tuple[Capability, ...] = ()
    """Capabilities of brokers without which the guarantee is not judged."""
    needs: tuple[str, ...] = ("sends",)
    """Evidence tables without which nothing can be judged."""
    reads: tuple[str, ...]
    """Tables that the queries read, in addition to those of excuses: tables of evidence, derived
    and shared tables, and columns of derived tables with sources of their own
    (`partitions.clock_moved`)."""
    rests_on: tuple[str, ...] = RECORDS
    """Evidence tables behind `slots`, `records` and the like whose damage leaves a violation in
    doubt."""
    subjects: tuple[str, ...] = ()
    """Derived tables, their rows of one kind (`cluster_tasks.leaderless`), and columns of
    `partitions` (`partitions.compacted`). In a run where all of these are empty, and 0 in every
    partition, nothing is an opportunity or a violation: the guarantee is not queried."""
    needs_complete_passes: bool = False
    """Whether a final pass that stopped short leaves the guarantee unknown."""

    reference: Reference | None = None
    """The meaning of `violations` in plain Python over small histories (reference.py)."""
    no_reference: str = ""
    """The reason for which there is no reference check."""
    reference_covers: tuple[str, ...] = ()
    """The sub-kinds that the reference check finds; empty for all."""
    reference_leaves_out: str = ""
    """An SQL condition over a violation's row (alias `violation`): what the reference check does
    not find."""

    reference_subject: str = ""
    """An SQL expression over a violation's row (alias `violation`), a text that distinguishes
    violations of one place (`Violation.subject`)."""

    def __post_init__(self) -> None:
        if bool(self.reference) == bool(self.no_reference):
            raise ValueError(
                f"the guarantee {self.name} has to declare either its reference check "
                "(`reference`) or the reason why none makes sense (`no_reference`)"
            )

    @property
    def never_fails(self) -> bool:
        """Whether every violation is permitted, and therefore only counted."""
        return any(excuse.when == ALWAYS for excuse in self.excuses)

    @property
    def compared_sub_kinds(self) -> tuple[str, ...]:
        """The sub-kinds in which the query and the reference check must agree."""
        return self.reference_covers or tuple(self.sub_kinds)

    @property
    def permitted_expression(self) -> str:
        """An SQL expression over a violation's row (alias `violation`): the reason that permits it,
        or NULL."""
        cases = " ".join(f"WHEN {excuse.when} THEN '{excuse.reason}'" for excuse in self.excuses)
        return f"CASE {cases} END" if cases else "CAST(NULL AS STRING)"

    def evidence(self) -> frozenset[str]:
        """Every evidence table whose damage may cause a violation, or hide what excuses it."""
        from urteil.harness.verify.provenance import sources  # it imports Arrow

        reads = {*self.reads, *(name for excuse in self.excuses for name in excuse.reads)}
        return frozenset({*self.rests_on, *self.needs}.union(*map(sources, reads)))

    def judged_violations(self) -> str:
        """The query of violations, each with the reason that permits it."""
        permitted = f"{self.permitted_expression} AS permitted"
        return f"SELECT violation.*, {permitted} FROM ({self.violations}) violation"

    def tally(self) -> str:
        """A query of one row: opportunities, violations, and permitted anomalies."""
        return (
            "SELECT CAST(opportunities.n AS BIGINT) AS opportunities, "
            "counts.n - counts.permitted AS violations, "
            f"counts.permitted FROM ({self.opportunities}) opportunities CROSS JOIN "
            f"(SELECT COUNT(*) AS n, COUNT(finding.permitted) AS permitted "
            f"FROM ({self.judged_violations()}) finding) counts"
        )

    def first(self, limit: int) -> str:
        """The query of the first findings, violations before permitted ones."""
        return (
            f"SELECT finding.* FROM ({self.judged_violations()}) finding ORDER BY "
            "CASE WHEN finding.permitted IS NULL THEN 0 ELSE 1 END, "
            "COALESCE(finding.p, -1), COALESCE(finding.off, -1), COALESCE(finding.at_ns, -1), "
            f"finding.sub_kind, {self.tie} "
            f"LIMIT {limit}"
        )


def union(*queries: str) -> str:
    """All rows of several queries; the first one names the columns."""
    return "\nUNION ALL\n".join(query.strip("\n") for query in queries)


def count_records(judged: str) -> str:
    """A query of how many records there are (`FROM records ...`); it reads their counts."""
    counted = judged.replace("FROM records", "FROM record_counts records")
    return f"SELECT COALESCE(SUM(records.n), 0) AS n {counted}"


def place(row: Mapping[str, Any]) -> str:
    """`topic-partition@offset` of a finding's row, as far as it is known."""
    offset = "" if row.get("off") is None else f"@{row['off']}"
    return f"{row.get('topic') or '?'}-{row.get('partition')}{offset}"


def acks(row: Mapping[str, Any]) -> str:
    """`acks=all` or `acks=N`."""
    return f"acks={'all' if row['acks'] == -1 else row['acks']}"
