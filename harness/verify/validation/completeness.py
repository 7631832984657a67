"""Completeness of the evidence: what is missing without a trace would be missed by no check.

Every replica that ZooKeeper names has a log, no version of a partition's state is left out, the
records of a final leader were read, and every writer and reader is a known client.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from urteil.harness.scenario import RunFacts
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.small_evidence import assigned_first, assigned_last
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.evidence import Row

LACKING = {
    "blank reads": "reads lack their client, session, offset, time or whether they were intact "
    "(evidence/reads)",
    "doubled reads": "reads are at a place in a poll that another row has (evidence/reads)",
    "blank replicas": "records on disks lack offset, leader epoch, CRC, time, or a sequence's "
    "producer, or a producer's sequence (evidence/replicas)",
    "beyond replicas": "records on disks lie beyond the end of their log (evidence/logs)",
    "nameless sends": "sends are of clients that evidence/clients does not have",
    "nameless reads": "reads are of clients that evidence/clients does not have",
    "hidden txns": "records of committed transactions lie beyond every final pass of readers of "
    "committed records",
    "blank accesses": "access attempts were answered, and do not tell when (evidence/accesses)",
    "blank admin_ops": "acts do not tell what was done, or changes of rights which right, or when "
    "(evidence/admin_ops)",
    "nameless txns": "sends are of transactions that evidence/txns does not have",
}
DOUBTED = (
    "blank reads",
    "doubled reads",
    "blank replicas",
    "blank accesses",
    "blank admin_ops",
    "nameless txns",
)
TALLY = """
SELECT 'blank reads' AS what, -1 AS n, COUNT(*) AS found FROM reads r
WHERE r.offset IS NULL OR r.intact IS NULL OR r.read_ns IS NULL OR r.client IS NULL
  OR r.session IS NULL
UNION ALL
SELECT 'doubled reads', -1, SUM(g.again) FROM gaps g
UNION ALL
SELECT 'blank replicas', -1, SUM(h.blank) FROM held h
UNION ALL
SELECT 'blank accesses', -1, COUNT(*) FROM accesses a
WHERE a.outcome <> 'info' AND a.complete_ns IS NULL
UNION ALL
SELECT 'blank admin_ops', -1, COUNT(*) FROM admin_ops o
WHERE o.act = '' OR (o.act IN ('grant', 'revoke')
  AND (COALESCE(o.subject, '') = '' OR o.invoke_ns IS NULL))
UNION ALL
SELECT 'beyond replicas', -1, SUM(h.beyond) FROM held h
UNION ALL
SELECT 'nameless sends', -1, COUNT(*) FROM sends s
LEFT JOIN (SELECT DISTINCT c.client FROM clients c) k ON k.client = s.client
WHERE k.client IS NULL
UNION ALL
SELECT 'nameless reads', -1, COUNT(*) FROM reads r
LEFT JOIN (SELECT DISTINCT c.client FROM clients c) k ON k.client = r.client
WHERE k.client IS NULL
UNION ALL
SELECT 'nameless txns', -1, COUNT(*) FROM sends s
LEFT JOIN txns t ON t.client = s.client AND t.session = s.session AND t.txn = s.txn
WHERE s.txn IS NOT NULL AND t.txn IS NULL
UNION ALL
SELECT 'hidden txns', -1, COUNT(*) FROM committed c JOIN vals v ON v.value_id = c.value_id
JOIN (SELECT DISTINCT k.p FROM cover k WHERE k.mask_rc <> 0) k ON k.p = c.p
WHERE v.rc_asked = 0
"""
"""Counts for `lacking`, to be asked with judgement's own."""


def incomplete_tables(tally: Sequence[Row]) -> dict[str, str]:
    """Tables with rows that nobody can place or compare, or without some that others name, each
    with its sentence."""
    return {
        str(row["what"]).split()[1]: f"{row['found']} {LACKING[row['what']]}"
        for row in tally
        if row["what"] in DOUBTED and row["found"]
    }


def missing_evidence(
    run_dir: Path, facts: RunFacts, derived: Derived, tally: Sequence[Row]
) -> list[str]:
    """A sentence for each part of the evidence that does not fit the rest."""
    sentences = [
        f"{row['found']} {LACKING[row['what']]}"
        for row in tally
        if row["what"] in LACKING and row["found"]
        if str(row["what"]).split()[1] not in facts.withheld
    ]
    if "states" not in facts.withheld:
        sentences += skipped(derived.tables["spans"])
        sentences += _strangers(derived.tables["spans"])
        sentences += _logs(run_dir, derived) if "logs" not in facts.withheld else []
    ours = [part for part in derived.parts if part["ours"]]
    sentences += [one for part in ours for one in _unlike(part, derived)]
    sentences += [one for part in ours for one in _unread(part, derived)]
    return sentences + [one for part in ours for one in _ends_early(part)]


def skipped(spans: Iterable[Row]) -> list[str]:
    """Versions of partitions' states between which another must have been."""
    return [
        f"{row['path']} went from version {row['prev_version']} to {row['version']}: "
        "evidence/states lacks what was between"
        for row in spans
        if row["prev_version"] is not None and row["version"] > row["prev_version"] + 1
    ]


def _strangers(spans: Iterable[Row]) -> list[str]:
    """Partitions that were made with others in their ISR than their replicas."""
    return [
        f"{row['path']}: brokers {row['strangers']} are in the first ISR and never were replicas "
        "(evidence/states)"
        for row in spans
        if row["strangers"] is not None and row["prev_version"] is None
    ]


def _logs(run_dir: Path, derived: Derived) -> list[str]:
    """Replicas of our topics, as assigned last, that left no log; partitions without a state, or
    that were made with fewer replicas than were asked for, or more."""
    states = list(evidence.rows(run_dir, "states"))
    assigned, made = assigned_last(states), assigned_first(states)
    kept: dict[int, set[int]] = defaultdict(set)
    for row in derived.tables["logs_p"]:
        kept[row["p"]].add(row["broker"])
    sentences = []
    for part in derived.parts:
        if not part["ours"] or part["gone"]:
            continue
        name = f"{part['topic']}-{part['partition']}"
        replicas = assigned.get((part["topic_id"], part["partition"]))
        if replicas is None:
            sentences.append(f"evidence/states has nothing about {name}")
            continue
        first, asked = made[part["topic_id"], part["partition"]], part["replication"]
        if asked not in (len(first), len(replicas)):
            sentences.append(f"{name} was made on {_brokers(first)}, though {asked} were asked for")
        lost = sorted(replicas - kept[part["p"]])
        sentences += [f"evidence/logs has no log of broker {broker} of {name}" for broker in lost]
    return sentences


def _unlike(part: Row, derived: Derived) -> list[str]:
    """Logs that begin at different offsets although nothing may have been deleted, and logs without
    epochs although others state them."""
    logs = [row for row in derived.tables["logs_p"] if row["p"] == part["p"]]
    name = f"{part['topic']}-{part['partition']}"
    silent = [row["broker"] for row in logs if not row["epochs_told"]]
    sentences = []
    if silent and len(silent) < len(logs):
        sentences.append(
            f"evidence/logs: {_brokers(silent)} tell no epochs of {name}, though others do"
        )
    starts = sorted({row["log_start"] or 0 for row in logs})
    kept = part["retention_ns"] is not None and not (part["retention_told"] or part["compacted"])
    hurt = part["trimmed"] or part["gone"] or part["clock_moved"] or part["lost_floor"] is not None
    if len(starts) > 1 and kept and not hurt:
        numbers = ", ".join(map(str, starts))
        sentences.append(
            f"evidence/logs: the logs of {name} begin at {numbers}, and nobody deleted any"
        )
    return sentences


def _brokers(numbers: Iterable[int]) -> str:
    return f"brokers {', '.join(str(number) for number in sorted(numbers))}"


def _unread(part: Row, derived: Derived) -> list[str]:
    """A log that holds something, of which no complete final pass covers anything."""
    if not part["has_log"] or part["gone"] or part["seen_end"] is None:
        return []
    covered = any(
        row["mask_ru"] or row["mask_rc"] for row in derived.tables["cover"] if row["p"] == part["p"]
    )
    if not covered and part["committed_end"] > part["log_start"]:
        return [f"the final passes over {part['topic']}-{part['partition']} cover nothing of it"]
    return []


def _ends_early(part: Row) -> list[str]:
    """A log that ends below the end that final passes received, which came after all faults."""
    ends = part["log_end"] if part["has_log"] and not (part["gone"] or part["compacted"]) else None
    if ends is None or part["seen_end"] is None or part["seen_end"] <= ends:
        return []
    name = f"{part['topic']}-{part['partition']}"
    return [
        f"final passes over {name} were told that it ends at {part['seen_end']}, the final "
        f"leader's log ends at {ends} (evidence/passes, evidence/logs)"
    ]
