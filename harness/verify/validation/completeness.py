"""Completeness of the evidence: an incomplete table may hide a violation from every check.

Every replica in the metadata has a log, no version of a partition's state is missing, and final
passes covered the records of a final leader to its end. `row_counts` relates single rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from urteil.harness.scenario import IMPORTED, RunFacts
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.small_evidence import first_assigned, last_assigned
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.derived.topic_changes import deleted_topics
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import NO_OFFSET


def gaps(run_dir: Path, facts: RunFacts, derived: Derived) -> Iterator[str]:
    """A sentence for each part of the evidence that does not fit the rest."""
    if not facts.topics:
        yield "run.json names no topic: nothing was promised"
    if "states" not in facts.withheld:
        yield from _skipped_versions(derived.tables["state_spans"])
        yield from _unassigned_brokers(derived.tables["state_spans"])
        if "logs" not in facts.withheld:
            yield from _missing_logs(run_dir, derived)
    yield from _incomplete_passes(run_dir, facts, derived)
    for part in derived.partitions:
        if part["in_run"]:
            yield from _disagreeing_logs(part, derived)
            yield from _uncovered_log(part, derived)
            yield from _early_end(part)


def far_offsets(run_dir: Path) -> str | None:
    """A reason if offsets are so large that slots of two partitions would be one."""
    ends = [(row["topic"], row["log_end"]) for row in evidence.rows(run_dir, "logs")]
    ends += [(row["topic"], row["to_offset"]) for row in evidence.rows(run_dir, "passes")]
    far = max(((end, topic) for topic, end in ends if (end or 0) > NO_OFFSET), default=None)
    if far is None:
        return None
    return f"{far[1]} has offsets up to {far[0]}, judged are those below {NO_OFFSET}"


def _skipped_versions(spans: Iterable[Row]) -> Iterator[str]:
    """Versions of partitions' states between which another one is missing."""
    for row in spans:
        if row["prev_version"] is not None and row["version"] > row["prev_version"] + 1:
            yield (
                f"{row['path']} went from version {row['prev_version']} to {row['version']}: "
                "evidence/states lacks what was between"
            )


def _unassigned_brokers(spans: Iterable[Row]) -> Iterator[str]:
    """Partitions whose first ISR has brokers that are not replicas."""
    for row in spans:
        if row["foreign_isr"] is not None and row["prev_version"] is None:
            yield (
                f"{row['path']}: brokers {row['foreign_isr']} are in the first ISR and never were "
                "replicas (evidence/states)"
            )


def _missing_logs(run_dir: Path, derived: Derived) -> Iterator[str]:
    """Replicas of the run's topics, as assigned last, without a log; partitions without a state, or
    created with another number of replicas than requested."""
    states = list(evidence.rows(run_dir, "states"))
    assigned, created = last_assigned(states), first_assigned(states)
    logs: dict[int, set[int]] = defaultdict(set)
    for row in derived.tables["logs_p"]:
        logs[row["p"]].add(row["broker"])
    for part in derived.partitions:
        if not part["in_run"] or part["gone"]:
            continue
        name = f"{part['topic']}-{part['partition']}"
        replicas = assigned.get((part["topic_id"], part["partition"]))
        if replicas is None:
            yield f"evidence/states has nothing about {name}"
            continue
        first, requested = created[part["topic_id"], part["partition"]], part["replication"]
        if requested not in (len(first), len(replicas)):
            yield f"{name} was created on {_brokers(first)}, though {requested} were requested"
        for broker in sorted(replicas - logs[part["p"]]):
            yield f"evidence/logs has no log of broker {broker} of {name}"


def _incomplete_passes(run_dir: Path, facts: RunFacts, derived: Derived) -> Iterator[str]:
    """Final passes that are missing or incomplete; deleted topics need none."""
    deleted = deleted_topics(evidence.rows(run_dir, "admin_ops"))
    ours = [
        part
        for part in derived.partitions
        if part["in_run"] and not (part["gone"] and part["topic"] in deleted)
    ]
    for name in derived.stopped_passes:
        yield f"a final pass over {name} stopped before its end"
    for part in ours:
        if part["seen_end"] is None and facts.runtime != IMPORTED:
            yield f"no complete final pass over {part['topic']}-{part['partition']}"
    for replica in derived.never_leading:
        yield f"no complete final pass asked {replica}"
    for part in ours:
        if not part["has_log"] and "logs" not in facts.withheld:
            yield f"no log of the final leader of {part['topic']}-{part['partition']}"


def _disagreeing_logs(part: Row, derived: Derived) -> Iterator[str]:
    """Logs that begin at different offsets although nothing may have been deleted, and logs without
    epochs although others have them."""
    logs = [row for row in derived.tables["logs_p"] if row["p"] == part["p"]]
    name = f"{part['topic']}-{part['partition']}"
    without = [row["broker"] for row in logs if not row["epochs_known"]]
    if without and len(without) < len(logs):
        yield f"evidence/logs: {_brokers(without)} have no epochs of {name}, though others have"
    starts = sorted({row["log_start"] or 0 for row in logs})
    kept = part["retention_ns"] is not None and not (
        part["retention_configured"] or part["compacted"]
    )
    hurt = part["trimmed"] or part["gone"] or part["clock_moved"] or part["lost_floor"] is not None
    if len(starts) > 1 and kept and not hurt:
        numbers = ", ".join(map(str, starts))
        yield f"evidence/logs: the logs of {name} begin at {numbers}, and nothing was deleted"


def _brokers(numbers: Iterable[int]) -> str:
    return f"brokers {', '.join(str(number) for number in sorted(numbers))}"


def _uncovered_log(part: Row, derived: Derived) -> Iterator[str]:
    """A log with records of which no complete final pass covers any."""
    if not part["has_log"] or part["gone"] or part["seen_end"] is None:
        return
    covered = any(
        row["mask_ru"] or row["mask_rc"] for row in derived.tables["cover"] if row["p"] == part["p"]
    )
    if not covered and part["committed_end"] > part["log_start"]:
        yield f"the final passes over {part['topic']}-{part['partition']} cover nothing of it"


def _early_end(part: Row) -> Iterator[str]:
    """A log that ends below the end that final passes, after all faults, received."""
    end = part["log_end"] if part["has_log"] and not (part["gone"] or part["compacted"]) else None
    if end is None or part["seen_end"] is None or part["seen_end"] <= end:
        return
    name = f"{part['topic']}-{part['partition']}"
    yield (
        f"final passes over {name} received the end {part['seen_end']}, the final leader's log "
        f"ends at {end} (evidence/passes, evidence/logs)"
    )
