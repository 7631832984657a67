"""Queries of guarantees find what their reference checks find, in scenes.

Histories of a topic lack many things: responses to lookups of every kind, indexes, quotas, outputs
of applications. A scene has rows of one guarantee alone (`tests/harness/verify/scenes`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.harness.verify.scenes import SCENES
from tests.harness.verify.scenes.scene import Draw, S, Scene, Tables, drawn
from tests.harness.verify.test_references import differences, selected_sql, sub_kind, with_places
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.verify import shared_tables
from urteil.harness.verify.derived.tables import DERIVED
from urteil.harness.verify.engines.engine import Duck
from urteil.harness.verify.expected_outputs import NO_EXPECTED_OUTPUTS
from urteil.harness.verify.guarantees import GUARANTEES, Guarantee
from urteil.harness.verify.reference import SmallHistory

GIVEN = {
    **SCHEMAS,
    **{name: table.schema for name, table in DERIVED.items()},
    "expected_outputs": NO_EXPECTED_OUTPUTS,
}
"""Tables whose rows a scene may have."""
SHARED = {*shared_tables.STAGES} - {"expected_outputs"}
RUNS = [[*range(first, first + 35)] for first in (0, 35, 70)]
"""Seeds of scenes that show each covered sub-kind."""


class Judge:
    """An engine whose tables are emptied after each run."""

    def __init__(self, work: Path) -> None:
        self.engine = Duck(work, threads=1)
        for name, schema in GIVEN.items():
            self.engine.table(name, schema.empty_table())

    def rows(self, some: Sequence[Guarantee], tables: Tables) -> dict[str, list[dict[str, Any]]]:
        """Guarantee to the rows that its query selects."""
        self._fill(tables)
        if any({*guarantee.reads} & SHARED for guarantee in some):
            shared_tables.build(self.engine, logless=False)
            self._fill({"expected_outputs": tables["expected_outputs"]})
        judged_rows = {
            guarantee.name: with_places(
                self.engine.query(selected_sql(guarantee)), tables["partitions"]
            )
            for guarantee in some
        }
        self._fill({table: [] for table in tables})
        return judged_rows

    def permissions(self, guarantee: Guarantee, tables: Tables) -> list[dict[str, Any]]:
        """The violations of a guarantee, each with why it is permitted."""
        self._fill(tables)
        shared_tables.build(self.engine, logless=False)
        self._fill({"expected_outputs": tables["expected_outputs"]})
        rows = self.engine.query(guarantee.judged_violations())
        self._fill({table: [] for table in tables})
        return rows

    def _fill(self, tables: Tables) -> None:
        for table, rows in tables.items():
            self.engine.table(table, pa.Table.from_pylist(rows, schema=GIVEN[table]))


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    own_judge = Judge(tmp_path_factory.mktemp("scenes"))
    yield own_judge
    own_judge.engine.close()


def compare(
    judge: Judge, tables: Tables, names: Sequence[str]
) -> tuple[list[str], Counter[tuple[str, str]]]:
    """All differences in these rows, and how often each sub-kind of each guarantee was found."""
    completed = defaultdict(list, tables)
    for table, rows in tables.items():
        columns = dict.fromkeys(GIVEN[table].names)
        completed[table] = [columns | row for row in rows]
    some = [GUARANTEES[name] for name in names]
    selected = judge.rows(some, completed)
    derived = {table: completed[table] for table in GIVEN.keys() - SCHEMAS.keys()}
    history = SmallHistory.of(completed, {}, derived=derived)
    texts = [
        text
        for guarantee in some
        for text in differences(guarantee, selected[guarantee.name], history)
    ]
    kinds = (
        (guarantee.name, sub_kind(guarantee, row))
        for guarantee in some
        for row in selected[guarantee.name]
    )
    return texts, Counter(kinds)


@pytest.mark.parametrize("draw", SCENES, ids=lambda draw: draw.__name__)
def test_queries_and_reference_checks_agree_on_each_sub_kind(judge: Judge, draw: Draw) -> None:
    names = SCENES[draw]
    kinds: Counter[tuple[str, str]] = Counter()
    for seeds in RUNS:
        problems, counted = compare(judge, drawn(draw, seeds), names)
        kinds += counted
        assert problems == []
    covered = {(name, kind) for name in names for kind in GUARANTEES[name].compared_sub_kinds}
    assert covered - kinds.keys() == set()


@pytest.mark.parametrize("draw", SCENES, ids=lambda draw: draw.__name__)
def test_queries_and_reference_checks_agree_in_any_scenes(judge: Judge, draw: Draw) -> None:
    @settings(max_examples=3, derandomize=True, suppress_health_check=list(HealthCheck),
              phases=(Phase.generate, Phase.shrink), database=None, deadline=None)  # fmt: skip
    @given(st.lists(st.integers(0, 100_000), min_size=1, max_size=30))
    def agree(seeds: list[int]) -> None:
        assert compare(judge, drawn(draw, seeds), SCENES[draw])[0] == []

    agree()


def test_acknowledgements_of_one_millisecond_count_each_from_its_own_time(judge: Judge) -> None:
    """The end was requested between two acknowledgements within one millisecond."""
    scene = Scene(0, Random(0), Random(0))
    scene.part()
    scene.spans()
    for offset, done_ns in ((5, 2 * S), (4, 2 * S + 900_000)):
        scene.send(0, offset, f"v{offset}", S, complete_ns=done_ns)
        scene.lie(0, f"v{offset}", offset, share=1)
    lookup = {"node": 1, "invoke_ns": 2 * S + 500_000, "complete_ns": 3 * S, "api_version": 7,
             "query": "latest", "offset": 5, "leader_epoch": 0, "error": None}  # fmt: skip
    scene.add("offset_answers", **scene.place(), **lookup)
    scene.add("answers", p=0, kind="latest", **lookup)
    outcome = compare(judge, scene.tables, ["end_below_ack"])
    assert outcome == ([], Counter({("end_below_ack", "behind"): 1}))


@pytest.mark.parametrize(
    ("spoilt", "is_permitted"), [("input", True), ("output", True), ("another", False)]
)
def test_reordered_copy_is_permitted_by_losses_of_its_own_partitions(
    judge: Judge, spoilt: str, is_permitted: bool
) -> None:
    scene = Scene(0, Random(0), Random(0))
    for n, name in enumerate(("input", "output", "another")):
        scene.part(n, copies=int(n == 1), losses_ns=4 * S if name == spoilt else None)
    scene.add("settings", in_flight=1, ordered=1)
    for offset, copy in ((0, 3), (1, 2)):
        scene.send(0, offset, f"v{offset}", S, key="a")
        scene.lie(0, f"v{offset}", offset, share=1)
        scene.lie(1, f"copy/v{offset}", copy, share=1)
    (row,) = judge.permissions(GUARANTEES["reordered_copy"], scene.tables)
    assert (row["value_id"], row["permitted"] is not None) == ("v1", is_permitted)


@pytest.mark.parametrize(
    ("columns", "is_permitted"),
    [
        ({"in_run": 1, "workload_topic": 1}, True),
        ({"in_run": 1, "copies": 1}, True),
        ({"in_run": 0}, True),
        ({"in_run": 1, "workload_topic": 0}, False),
    ],
)
def test_losses_of_application_inputs_permit_wrong_results(
    judge: Judge, columns: dict[str, int], is_permitted: bool
) -> None:
    """Its inputs and outputs, and internal topics: not another topic of the run."""
    scene = Scene(0, Random(0), Random(0))
    scene.part(losses_ns=4 * S, **columns)
    scene.add("settings", in_flight=1, ordered=0, promise="exactly-once")
    scene.add("expected_outputs", sink="s", key="a", value="1", mode="latest", due=1)
    (row,) = judge.permissions(GUARANTEES["wrong_result"], scene.tables)
    assert (row["sub_kind"], row["permitted"] is not None) == ("missing", is_permitted)


def test_copy_in_another_partition_too_is_not_translated_too_far(judge: Judge) -> None:
    """A copy counts at its last offset: by its offset in another partition it would be below the
    translated one."""
    scene = Scene(0, Random(0), Random(0))
    for n in range(3):
        scene.part(n)
    scene.add("mirrors", p=scene.p(1), source_p=scene.p(0))
    scene.send(0, 0, "v", S)
    for n, value, offset in ((0, "v", 0), (1, "copy/v", 5), (2, "copy/v", 2)):
        scene.lie(n, value, offset, share=1)
    scene.add("translations", grp="g", p=scene.p(1), source_p=scene.p(0), position=3, processed=0,
              at_ns=2 * S, until_ns=3 * S)  # fmt: skip
    assert compare(judge, scene.tables, ["translated_too_far"]) == ([], Counter())
