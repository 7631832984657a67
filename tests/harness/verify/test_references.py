"""Queries of guarantees find what their reference checks find, in generated histories.

Many small topics, each damaged at random, make one run. DuckDB runs the queries over it once; the
reference checks read the same rows. What a query selects of the covered sub-kinds and what the
reference check yields must be the same violations, permitted or not.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.harness.verify.histories import changes
from tests.harness.verify.histories.damage import OF_KIND, Piece, Tables
from tests.harness.verify.histories.history import KINDS, History
from tests.harness.verify.histories.tables import CONFIG, ENDS_NS, facts, scenario, tables
from tests.harness.verify.scenes import SCENES
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.verify import judgement, shared_tables, synthetic
from urteil.harness.verify.derived.tables import DERIVED
from urteil.harness.verify.engines.engine import open_engine, open_views
from urteil.harness.verify.guarantees import GUARANTEES, Guarantee
from urteil.harness.verify.reference import SmallHistory, Violation

Rows = list[dict[str, Any]]
STEPS = 24
EXAMPLES = int(os.environ.get("URTEIL_REFERENCE_EXAMPLES", "60"))
"""Runs of the thorough test."""
REFERENCED = {name: guarantee for name, guarantee in GUARANTEES.items() if guarantee.reference}
IN_SCENES = {name for names in SCENES.values() for name in names}
"""Guarantees whose sub-kinds occur in the scenes of test_scene_references.py."""
NAMES = sorted(
    {*changes.CHANGES, *(change.__name__ for some in OF_KIND.values() for change in some)}
)


@dataclass(frozen=True)
class Topic:
    """A generated history of one topic, and its changes."""

    kind: str
    seed: int
    changes: tuple[str, ...]


TOPICS = st.builds(
    Topic,
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10_000),
    changes=st.lists(st.sampled_from(NAMES), max_size=3).map(tuple),
)


def played(topics: Sequence[Topic]) -> tuple[list[History], Tables]:
    """The topics h0, h1 and so on, with all their rows."""
    merged: Tables = defaultdict(list)
    histories = []
    for number, topic in enumerate(topics):
        history = History(
            run="r", number=number, kind=topic.kind, seed=topic.seed, steps=STEPS
        ).play()
        histories.append(history)
        piece = Piece(tables([history]), history.topic, Random(topic.seed))
        for name in topic.changes:
            changes.apply(name, piece)
        for name, rows in piece.tables.items():
            merged[name] = rows if name == "faults" else merged[name] + rows
    return histories, {
        name: [dict.fromkeys(SCHEMAS[name].names) | row for row in rows]
        for name, rows in merged.items()
    }


def judged(histories: Sequence[History], rows: Tables) -> tuple[Tables, Tables]:
    """Guarantee to the rows that its query selects, and the derived tables."""
    run_scenario, run_facts = scenario(histories), facts(histories)
    with tempfile.TemporaryDirectory() as folder:
        run, work = Path(folder) / "run", Path(folder) / "work"
        work.mkdir()
        synthetic.write_run(run, rows, run_scenario, run_facts)
        derived = judgement.prepare(run, run_scenario, run_facts)
        engine = open_engine("duckdb", run, work, master=None, session=None)
        try:
            open_views(engine, run, derived)
            shared_tables.build(engine, logless=derived.logless)
            return {
                name: with_places(engine.query(selected_sql(guarantee)), derived.partitions)
                for name, guarantee in REFERENCED.items()
            }, {
                name: [dict.fromkeys(DERIVED[name].schema.names) | row for row in some]
                for name, some in derived.tables.items()
            }
        finally:
            engine.close()


def selected_sql(guarantee: Guarantee) -> str:
    """The violations that a reference check must find."""
    left_out = (
        f" WHERE NOT ({guarantee.reference_leaves_out})" if guarantee.reference_leaves_out else ""
    )
    subject = guarantee.reference_subject or "CAST(NULL AS STRING)"
    rows = f"FROM ({guarantee.violations}) violation{left_out}"
    return f"SELECT violation.*, {subject} AS told_apart_by {rows}"


def with_places(rows: Rows, partitions: Rows) -> Rows:
    """Selected rows with topic and partition."""
    places = {part["p"]: (part["topic"], part["partition"]) for part in partitions}
    return [row | {"place": places.get(row["p"], (None, None))} for row in rows]


def differences(
    guarantee: Guarantee, rows: Sequence[dict[str, Any]], history: SmallHistory
) -> Iterator[str]:
    """Violations that only the query or only the reference check finds."""
    assert guarantee.reference is not None
    violations = set(guarantee.reference(history))
    selected = {
        Violation(kind, *row["place"], row["off"], row.get("value_id"), row["told_apart_by"])
        for row in rows
        if (kind := sub_kind(guarantee, row)) in guarantee.compared_sub_kinds
    }
    for violation in selected:
        if not violations & {violation, violation._replace(sub_kind=None)}:
            yield f"{guarantee.name}: only the query finds {violation}"
    vague = {violation._replace(sub_kind=None) for violation in selected}
    for violation in violations - selected:
        if violation.sub_kind is not None or violation not in vague:
            yield f"{guarantee.name}: only the reference check finds {violation}"


def sub_kind(guarantee: Guarantee, row: dict[str, Any]) -> str:
    """The declared sub-kind of a row; `, on some replicas` is an addition."""
    name = str(row["sub_kind"])
    return name if name in guarantee.sub_kinds else name.split(", ")[0]


def compare(topics: Sequence[Topic]) -> tuple[list[str], Counter[tuple[str, str]]]:
    """All differences, and how often each sub-kind of each guarantee was found."""
    histories, rows = played(topics)
    selected, derived = judged(histories, rows)
    config = {history.topic: CONFIG.get(history.kind, {}) for history in histories}
    history = SmallHistory.of(rows, config, ENDS_NS, derived)
    texts = [
        text
        for name, guarantee in REFERENCED.items()
        for text in differences(guarantee, selected[name], history)
    ]
    return texts, Counter(
        (name, sub_kind(guarantee, row))
        for name, guarantee in REFERENCED.items()
        for row in selected[name]
    )


FITTING = {
    name: [
        kind
        for kind in KINDS
        if name in changes.CHANGES or name in {change.__name__ for change in OF_KIND[kind]}
    ]
    for name in NAMES
}
"""Change to the kinds of topics that it is for."""

OF_GROUPS = [
    Topic(kind, seed, tuple(done))
    for kind, seed, *done in (
        ("compacted", 73, "bring_back_a_key", "record unread"),
        ("compacted", 2, "clean_active"),
        ("compacted", 26, "record on no disk"),
        ("compacted", 8, "replicas.batch_base 0 on all"),
        ("plain", 1, "fail_unread"),
        ("plain", 3, "own_at_once"),
        ("plain", 5, "commit_in_an_old_epoch"),
        ("plain", 23, "acknowledge_below_min_isr"),
        ("transactional", 12, "replicas.producer_epoch 0 on all"),
        ("plain", 68, "commit_beyond"),
        ("plain", 229, "commit_reads.intact"),
        ("plain", 308, "lead_group"),
        ("plain", 348, "assignments forgotten"),
        ("plain", 506, "replace_static"),
        ("plain", 564, "assign_again"),
        ("plain", 1, "serve_deleted"),
        ("tables", 280, "hide_from_committed", "end_otherwise"),
        ("tables", 317, "commits.outcome"),
        ("tables", 532, "clean_active"),
        ("tables", 625, "delete_from_compacted"),
        ("tables", 810, "hide_from_committed", "end_otherwise"),
        ("tables", 890, "clean_active"),
        ("tables", 937, "keep_member"),
        ("transactional", 21, "answer_stable_end"),
        ("transactional", 88, "drop of reads", "end_otherwise"),
        ("transactional", 298, "delete_from_compacted"),
        ("transactional", 347, "commit_late"),
        ("transactional", 484, "take_over", "end_otherwise"),
        ("transactional", 942, "hide_from_committed", "end_otherwise"),
        *(("transactional", seed, "take_over") for seed in (4, 7)),
        *(("transactional", seed, "hide_transaction") for seed in range(4)),
        ("transactional", 1, "serve_aborted"),
        ("tables", 2, "serve_aborted"),
    )
]
"""Topics in which groups, transactions, compaction and retention violate each covered sub-kind, and
those that few seeds of other changes violate."""

OF_NONE = Topic("lax", 73, ("move_to_other_partition",))
"""A topic in which a log has a record of an epoch that it does not know."""

EACH = [*OF_GROUPS, OF_NONE] + [
    Topic(FITTING[name][seed % len(FITTING[name])], seed, (name,))
    for number, name in enumerate(name for name in NAMES if name not in changes.OF_GROUPS)
    for seed in range(number, number + 2)
]
"""Every other change, of two topics."""


@pytest.fixture(scope="module")
def each() -> tuple[list[str], Counter[tuple[str, str]]]:
    return compare(EACH)


def test_queries_agree_with_reference_checks_after_each_change(
    each: tuple[list[str], Counter[tuple[str, str]]],
) -> None:
    assert each[0] == []


def test_each_covered_sub_kind_is_found_in_a_history(
    each: tuple[list[str], Counter[tuple[str, str]]],
) -> None:
    covered = {
        (name, kind)
        for name in REFERENCED.keys() - IN_SCENES
        for kind in REFERENCED[name].compared_sub_kinds
    }
    assert covered - each[1].keys() == set()


def test_difference_of_query_and_reference_check_is_named() -> None:
    histories, rows = played([Topic("plain", 1, ("append_again",))])
    guarantee, history = GUARANTEES["duplicate"], SmallHistory.of(rows, {})
    (row,) = judged(histories, rows)[0]["duplicate"]
    assert [*differences(guarantee, [row], history)] == []
    (missing,) = differences(guarantee, [], history)
    assert missing.startswith("duplicate: only the reference check finds")
    only_query, only_reference = differences(guarantee, [row | {"off": -5}], history)
    assert "only the query" in only_query
    assert "only the reference check" in only_reference


QUIET = list(HealthCheck)
PHASES = (Phase.explicit, Phase.generate, Phase.shrink)
RUNS = st.lists(TOPICS, min_size=1, max_size=80)


@settings(max_examples=2, derandomize=True, suppress_health_check=QUIET, phases=PHASES)
@example([Topic("plain", 2038, ())])  # a client has no end
@given(RUNS)
def test_queries_agree_with_reference_checks(topics: list[Topic]) -> None:
    assert compare(topics)[0] == []


@pytest.mark.thorough
@settings(max_examples=EXAMPLES, suppress_health_check=QUIET, phases=PHASES)
@given(RUNS)
def test_queries_agree_with_reference_checks_in_many_runs(topics: list[Topic]) -> None:
    assert compare(topics)[0] == []
