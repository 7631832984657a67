"""The reasons that keep a run from `PASS`: each makes its verdict UNKNOWN, never FAIL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import IMPORTED, RunFacts, Scenario
from urteil.harness.verify import evidence
from urteil.harness.verify.derived.state_spans import NO_OFFSET
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.derived.topic_changes import deleted_topics, killed_clients
from urteil.harness.verify.evidence import Row, targets_of
from urteil.harness.verify.plurals import counted

_FAULTS = "faults.jsonl"
TIMED = {
    "sends": "send",
    "polls": "poll",
    "commits": "commit",
    "commit_reads": "OffsetFetch answer",
    "offset_answers": "ListOffsets answer",
    "accesses": "access attempt",
    "passes": "sweep",
    "txns": "transaction",
}
"""Tables whose rows begin and end, to what one row is."""

REQUIRED = ("sends", "reads", "passes", "replicas", "logs", "states", "manifest")


def damaged_clients(run_dir: Path) -> frozenset[str]:
    """Clients whose journal is not whole, though nobody killed them on purpose."""
    killed = killed_clients(evidence.rows(run_dir, "admin_ops"))
    return frozenset(
        Path(str(row["file"])).stem
        for row in evidence.rows(run_dir, "manifest")
        if kind_of(row) == "journal" and not row["ended_properly"] and row["file"] != _FAULTS
        if Path(str(row["file"])).stem not in killed
    )


def reasons(
    run_dir: Path,
    scenario: Scenario,
    facts: RunFacts,
    derived: Derived,
    ticks: Sequence[Row],
    tally: Sequence[Row],
) -> list[str]:
    """Everything that keeps the run from a green verdict, beside the guarantees themselves.

    `ticks` are the acknowledgements by time, `tally` the counts of judgement's `_TALLY`.
    """
    sentences = [
        *facts.problems,
        *_missing_tables(run_dir, facts),
        *incomplete_sends(tally),
        *reversed_times(tally),
        *far_offsets(run_dir),
        *several_boots(run_dir, facts),
        *_manifest(run_dir),
        *(f"the journal of {client} did not end properly" for client in sorted(derived.damaged)),
        *_faults(scenario, derived),
        *_traffic(scenario, facts, derived, ticks),
        *_attempts(facts, derived, tally),
        *stray_rows(facts, tally),
        *_passes(run_dir, facts, derived),
        *_unfinished_searches(derived),
        *_mutant(facts),
    ]
    return list(dict.fromkeys(sentences))


def _missing_tables(run_dir: Path, facts: RunFacts) -> list[str]:
    return [f"the evidence has no {table}" for table in empty_tables(run_dir, facts)]


def empty_tables(run_dir: Path, facts: RunFacts) -> list[str]:
    """Tables that every run has, and this one has not; of logs that hold nothing there are no
    records, and no passes where final readers alone would have made some, and came to an end."""
    wanted = [table for table in REQUIRED if table not in facts.withheld]
    found = [table for table in wanted if evidence.row_count(run_dir, table) == 0]
    if "replicas" in found and "logs" not in found:
        logs = evidence.rows(run_dir, "logs")
        if all((row["log_start"] or 0) == row["log_end"] for row in logs):
            found.remove("replicas")
    if "passes" in found:
        clients = evidence.rows(run_dir, "clients")
        final = [row for row in clients if row["kind"] == "final"]
        readers = any(row["kind"] == "consumer" for row in clients)
        if final and not readers and all(row["end_ns"] is not None for row in final):
            found.remove("passes")
    return found


def _manifest(run_dir: Path) -> list[str]:
    """What was cut or damaged before it became evidence."""
    return [
        f"{row['file']} is damaged or was cut"
        for row in evidence.rows(run_dir, "manifest")
        if not row["ended_properly"]
        if kind_of(row) != "journal" or row["file"] == _FAULTS
    ]


def altered_tables(run_dir: Path) -> dict[str, str]:
    """Tables that differ from what the manifest says was written, each with the sentence.

    Any difference leaves every accusation that rests on the table in doubt: what was not seen may
    just have gone missing.
    """
    sentences: dict[str, str] = {}
    parts: dict[str, str] = {}
    for row in evidence.rows(run_dir, "manifest"):
        file, kind = str(row["file"]), kind_of(row)
        table = _table_of(file)
        if kind not in ("part", "table") or table not in SCHEMAS or row["rows"] is None:
            continue
        if kind == "part":
            odd = _odd_part(run_dir, file, row["rows"])
            parts |= {table: odd} if odd else {}
        elif (have := evidence.row_count(run_dir, table)) != row["rows"]:
            sentences[table] = f"the manifest says {row['rows']} rows of {table}, there are {have}"
    return sentences | parts


def _odd_part(run_dir: Path, file: str, rows: int) -> str | None:
    """What is wrong with a part of which the manifest says that it has so many rows."""
    part = run_dir / file
    if not part.exists():
        return f"{file} is missing" if rows else None
    have = evidence.footer(part).num_rows
    return None if have == rows else f"the manifest says {rows} rows of {file}, there are {have}"


def kind_of(row: Row) -> str:
    """The kind of a row of the manifest, derived from its file name where it is null."""
    if row["kind"]:
        return str(row["kind"])
    path = Path(str(row["file"]))
    if path.suffix == ".parquet":
        return "part"
    if path.name in SCHEMAS:
        return "table"
    if path.suffix == ".jsonl":
        return "journal"
    return "zookeeper_log" if "version-2" in path.parts else "replica_log"


def far_offsets(run_dir: Path) -> list[str]:
    """Offsets behind which slots of two partitions would be one."""
    ends = [(row["topic"], row["log_end"]) for row in evidence.rows(run_dir, "logs")]
    ends += [(row["topic"], row["to_offset"]) for row in evidence.rows(run_dir, "passes")]
    far = max(((end, topic) for topic, end in ends if (end or 0) > NO_OFFSET), default=None)
    return (
        [f"{far[1]} has offsets up to {far[0]}, judged are those below {NO_OFFSET}"] if far else []
    )


def incomplete_sends(tally: Sequence[Row]) -> list[str]:
    """Sends that do not say what they were, or say it twice: what they wrote would seem to come
    from nowhere, or from two."""
    lacks = {
        "blank sends": (
            "send",
            "without value_id, outcome or times, or the partition of its offset",
        ),
        "doubled sends": ("send", "doubled in evidence/sends"),
        "alike sends": (
            "value_id",
            "of several sends (evidence/sends): each record needs one that no other has",
        ),
    }
    return _defect_counts(lacks, tally)


def reversed_times(tally: Sequence[Row]) -> list[str]:
    """Clocks that went back: nothing that compares times accuses anybody then."""
    lacks = {
        f"turned {table}": (noun, f"ended before beginning: a clock went back (evidence/{table})")
        for table, noun in TIMED.items()
    }
    return _defect_counts(lacks, tally)


def _defect_counts(lacks: dict[str, tuple[str, str]], tally: Sequence[Row]) -> list[str]:
    """What there is any of: its noun, and what is wrong with it."""
    found = [(row["found"], lacks[row["what"]]) for row in tally if row["what"] in lacks]
    return [f"{counted(number, noun)} {wrong}" for number, (noun, wrong) in found if number]


def several_boots(run_dir: Path, facts: RunFacts) -> list[str]:
    """Clients of several boots: their monotonic clocks have nothing in common."""
    known = {row["boot_id"] for row in evidence.rows(run_dir, "clients")} | {facts.boot_id}
    known -= {None, ""}
    return [f"times of {len(known)} boots cannot be compared"] if len(known) > 1 else []


def _table_of(file: str) -> str:
    path = Path(file)
    named = path.parent.name if path.suffix == ".parquet" else path.name
    return named or path.stem


def _faults(scenario: Scenario, derived: Derived) -> list[str]:
    sentences = [
        f"fault {fault['fault']} did not act: {fault['proof'] or 'no proof'}"
        for fault in derived.faults
        if not fault["acted"]
    ]
    sentences += [
        f"fault {fault['fault']} was never healed"
        for fault in derived.faults
        if fault["acted"] and fault["healed_ns"] is None
    ]
    lacking = lacking_faults(scenario, derived)
    return [*sentences, lacking] if lacking else sentences


def lacking_faults(scenario: Scenario, derived: Derived) -> str | None:
    """A reason where fewer faults were recorded than scheduled: their excuses would be missing."""
    asked, have = len(scenario.faults), len(derived.faults)
    return f"only {have} of {asked} faults left a row in the evidence" if have < asked else None


def _traffic(
    scenario: Scenario, facts: RunFacts, derived: Derived, ticks: Sequence[Row]
) -> list[str]:
    """Too little traffic before the first fault, after the last one, or over the whole run.

    Where others recorded the history, their faults came when they came.
    """
    begun = min((fault["begin_ns"] for fault in derived.faults), default=None)
    healed = max((fault["healed_ns"] or 0 for fault in derived.faults), default=None)
    counts = {"in all": sum(row["acks"] for row in ticks)}
    if begun is not None and healed is not None and facts.runtime != IMPORTED:
        counts["before the faults"] = sum(r["acks"] for r in ticks if r["last_ns"] <= begun)
        counts["after the faults"] = sum(r["acks"] for r in ticks if r["first_ns"] >= healed)
    return [
        f"only {count} acknowledgements {when}, at least {scenario.minimum_acks} are asked for"
        for when, count in counts.items()
        if count < scenario.minimum_acks
    ]


def _attempts(facts: RunFacts, derived: Derived, tally: Sequence[Row]) -> list[str]:
    """Faults during which nobody even tried to send: acknowledgements a fault may well prevent."""
    if facts.runtime == IMPORTED:
        return []
    tried = {row["n"]: row["found"] for row in tally if row["what"] == "sends"}
    return [
        f"nobody sent anything during {fault['fault']} on {', '.join(targets_of(fault))}"
        for n, fault in enumerate(derived.faults)
        if fault["acted"] and not tried.get(n)
    ]


def stray_rows(facts: RunFacts, tally: Sequence[Row]) -> list[str]:
    """Rows that belong to no known partition: no check would miss them."""
    lacking = {
        "stray sends": "name no partition of a topic in run.json",
        "placeless sends": "name no partition of a topic in run.json",
        "stray reads": "name no partition of a topic in run.json",
    }
    if facts.runtime == IMPORTED:
        del lacking["placeless sends"]
    sentences = [] if facts.topics else ["run.json names no topic: nothing was promised"]
    return sentences + [
        f"{row['found']} {row['what'].split()[1]} {lacking[row['what']]}"
        for row in tally
        if row["what"] in lacking and row["found"]
    ]


def _passes(run_dir: Path, facts: RunFacts, derived: Derived) -> list[str]:
    """What final readers were not given. Topics that somebody had deleted owe nothing."""
    deleted = deleted_topics(evidence.rows(run_dir, "admin_ops"))
    ours = [
        part
        for part in derived.parts
        if part["ours"] and not (part["gone"] and part["topic"] in deleted)
    ]
    sentences = [f"a final pass over {name} stopped before its end" for name in derived.short]
    sentences += [
        f"no complete final pass over {part['topic']}-{part['partition']}"
        for part in ours
        if part["seen_end"] is None and facts.runtime != IMPORTED
    ]
    sentences += [f"no complete final pass asked {replica}" for replica in derived.unasked]
    return sentences + [
        f"no log of the final leader of {part['topic']}-{part['partition']}"
        for part in ours
        if not part["has_log"] and "logs" not in facts.withheld
    ]


def _unfinished_searches(derived: Derived) -> list[str]:
    """Registers that are not searched to the end, as a checker of linearizability says, too."""
    names = {part["p"]: f"{part['topic']}-{part['partition']}" for part in derived.parts}
    return [
        f"more orders of the commits of {row['grp']} in {names[row['p']]} are possible than "
        "commit_register tries"
        for row in derived.tables["commit_breaks"]
        if row["kind"] == "unfollowed"
    ]


def _mutant(facts: RunFacts) -> list[str]:
    if facts.mutant is not None and facts.mutant_ran is False:
        return [f"the patched line of the mutant {facts.mutant} never ran"]
    return []
