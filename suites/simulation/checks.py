"""The guarantees, judged by the evidence of a simulation.

The reference checks of the lab's guarantees judge the rows of a small history
(`harness/verify/reference.py`). What these checks leave out is judged here: `LOCAL`. A check that
ends with an exception is an error of the lab, not a finding; the others still judge.
"""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from urteil.broker.wire.batches import parse_header
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.guarantees.metadata.wrong_answer import access_subject
from urteil.harness.verify.reference import Reference, SmallHistory, Violation
from urteil.suites.simulation import (
    administration_checks,
    copier_checks,
    deletion_checks,
    group_checks,
    lookup_checks,
    recovery_checks,
    repetition_checks,
    shutdown_checks,
    simple_group_checks,
)
from urteil.suites.simulation.evidence import Evidence, Glimpse, Place, leaderless
from urteil.suites.simulation.rows import small_history


@dataclass(frozen=True, slots=True)
class Finding:
    guarantee: str
    sentence: str


@dataclass(frozen=True, slots=True)
class CheckError:
    """A check that ended with an exception: the lab's own failure, which says nothing about the
    brokers. `error` has the exception's type and text, and where it was raised."""

    check: str
    error: str


class Judgement(NamedTuple):
    """What the checks found, and which of them failed."""

    findings: list[Finding]
    errors: list[CheckError]


REFERENCES = (
    *("lost_write", "unseen", "vanished_read", "phantom", "aborted_read", "future_read"),
    *("duplicate", "inconsistent_offset", "misplaced_ack", "reordered_send", "sequence_gap"),
    *("stale_append", "causal_loss", "hole", "replica_divergence", "epoch_lineage"),
    *("two_leaders", "epoch_went_back", "unclean_leader"),
    *("torn_txn", "precommitted_read", "zombie_write", "hanging_txn"),
    *("commit_went_back", "generation_went_back", "two_owners", "zombie_commit"),
    *("latest_value_lost", "stale_value_visible", "tombstone_too_early", "resurrected_key"),
    *("compacted_too_early", "offset_renumbered"),
    *("retained_too_short", "kept_too_long", "segment_not_rolled"),
    "wrong_answer",
    *("stalled_partition", "stalled_producer", "slow_fetch", "slow_acknowledgement"),
    *("poll_skip", "end_below_ack", "latest_went_back", "disagreement", "wrong_log_start"),
    *("time_index_wrong", "no_delivery", "undeleted_records", "index_wrong"),
)
"""The guarantees whose reference checks a simulation can feed. `ack_below_min_isr` needs to know
which faults hid an ISR from its leader; here the leader's own memory is known instead."""
OF_IDEMPOTENT = ("duplicate", "reordered_send")
"""Without idempotence these are permitted, which reference checks leave to the excuses."""
WITHOUT_DELETIONS = ("retained_too_short",)
"""Reference checks that leave out what an administrator deleted: such partitions are not judged."""


ROWS = "rows of the evidence"
"""The check of an error in the history that all reference checks read."""


def judge(evidence: Evidence) -> Judgement:
    """Every anomaly, by guarantee. Never raises: a check that fails is an error of the lab."""
    findings: list[Finding] = []
    errors: list[CheckError] = []
    try:
        history = small_history(evidence)
    except Exception as error:
        errors.append(check_error(ROWS, error))
    else:
        for name in REFERENCES:
            try:
                violations = sorted(_violations(name, history), key=str)
            except Exception as error:
                errors.append(check_error(name, error))
            else:
                findings += [Finding(name, _sentence(each, history)) for each in violations]
    for name, check in LOCAL:
        try:
            findings += [Finding(name, sentence) for sentence in check(evidence)]
        except Exception as error:
            errors.append(check_error(name, error))
    return Judgement(findings, errors)


def check_error(check: str, error: Exception) -> CheckError:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}, line {frame.lineno}"
    return CheckError(check, f"{type(error).__name__}: {str(error)[:500]} ({where})")


def _violations(name: str, history: SmallHistory) -> Iterator[Violation]:
    check = _reference(name)
    for violation in check(history):
        if name in WITHOUT_DELETIONS and _is_trimmed(history, violation):
            continue
        send = history.sends_by_value.get(violation.value_id or "")
        if name not in OF_IDEMPOTENT or (send is not None and send.idempotent):
            yield violation


def _is_trimmed(history: SmallHistory, violation: Violation) -> bool:
    row = history.parts_at.get((violation.topic or "", violation.partition or 0))
    return row is not None and bool(row.trimmed)


def _reference(name: str) -> Reference:
    check = GUARANTEES[name].reference
    assert check is not None, name
    return check


def _sentence(violation: Violation, history: SmallHistory) -> str:
    errors = {access_subject(row): row.error for row in history.accesses}
    if violation.subject in errors:
        return f"{violation.subject}: {errors[violation.subject]}"
    at = "" if violation.offset is None else f" at offset {violation.offset}"
    value = "" if violation.value_id is None else f"{violation.value_id}, "
    return f"{value}{violation.topic}-{violation.partition}{at}: {violation.sub_kind or 'violated'}"


def first_sequence(evidence: Evidence) -> Iterator[str]:
    """The first sequence of a producer in a log is 0. The reference check accepts any, as a log may
    have lost its begin; here only those of topics with limits have."""
    if evidence.promises.configs:
        return
    for place, replicas in evidence.replicas.items():
        for replica in replicas:
            producers: set[tuple[int, int]] = set()
            for base, batch in replica.batches:
                header = parse_header(batch)
                producer, sequence = header.producer_id, header.base_sequence
                if producer < 0 or header.is_control:
                    continue
                if (producer, header.producer_epoch) not in producers and sequence != 0:
                    yield f"{place} on {replica.broker}: {producer} begins at {sequence}, {base}"
                producers.add((producer, header.producer_epoch))


def ack_below_min_isr(evidence: Evidence) -> Iterator[str]:
    """A leader whose memory shows too small an ISR before and after, and the same between, may not
    acknowledge what was invoked and answered in that time. No journal of the lab has its memory."""
    spans: dict[tuple[Place, int], list[tuple[float, float]]] = defaultdict(list)
    begun: dict[tuple[Place, int], Glimpse] = {}
    for glimpse in evidence.glimpses:
        key = (glimpse.place, glimpse.broker)
        before = begun.get(key)
        same = before and (before.isr, before.leader_epoch) == (glimpse.isr, glimpse.leader_epoch)
        if glimpse.in_flight or len(glimpse.isr) >= evidence.min_isr:
            begun.pop(key, None)
        elif same and before:
            spans[key].append((before.at_s, glimpse.at_s))
        else:
            begun[key] = glimpse
    for send in evidence.acked():
        for since, until in spans.get(((send.topic, send.partition), send.node), ()):
            if since < send.begin_s and send.end_s < until and send.attempts == 1:
                yield f"{send.values[0]} at {send.end_s:.3f} s by {send.node}"
                break


def no_progress(evidence: Evidence) -> Iterator[str]:
    """Troubles that the simulation itself noticed."""
    yield from evidence.troubles
    for place in sorted(leaderless(evidence)):
        yield f"{place} has no log of a leader"


LOCAL: tuple[tuple[str, Callable[[Evidence], Iterable[str]]], ...] = (
    ("sequence_gap", first_sequence),
    ("ack_below_min_isr", ack_below_min_isr),
    ("no_progress", no_progress),
    ("undone_administration", administration_checks.undone_administration),
    ("unfinished_administration", administration_checks.unfinished_administration),
    ("preferred_leader_ignored", administration_checks.preferred_leader_ignored),
    ("leftover_log", administration_checks.leftover_log),
    ("slow_recovery", recovery_checks.slow_recovery),
    ("dead_replica_in_isr", recovery_checks.dead_replica_in_isr),
    ("member_expelled", group_checks.member_expelled),
    ("departed_member_kept", group_checks.departed_member_kept),
    ("static_member_rebalanced", group_checks.static_member_rebalanced),
    ("epoch_lineage", lookup_checks.epoch_lineage),
    ("leadership_not_handed_over", shutdown_checks.leadership_not_handed_over),
    ("leftover_log", administration_checks.lasting_files),
    ("duplicate", repetition_checks.duplicate),
    ("undeleted_records", deletion_checks.undeleted_records),
    ("commit_register", simple_group_checks.commit_register),
    ("commit_register", copier_checks.commit_register),
    ("offsets_not_atomic", copier_checks.offsets_not_atomic),
    ("no_progress", copier_checks.rejected_offsets),
)
