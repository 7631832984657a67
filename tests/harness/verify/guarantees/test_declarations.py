"""The declarations of a guarantee agree with its queries."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest
import sqlglot
from sqlglot import exp

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify.derived.tables import DERIVED
from urteil.harness.verify.guarantees import GUARANTEES, SUBJECTS, Guarantee
from urteil.harness.verify.guarantees.base import Occasion
from urteil.harness.verify.shared_tables import STAGES

WITH_SOURCES = {column for table in DERIVED.values() for column in table.columns_made_of}
"""Columns of derived tables that rest on other evidence than their table."""


def _declared(guarantee: Guarantee) -> set[str]:
    return {*guarantee.reads, *(name for excuse in guarantee.excuses for name in excuse.reads)}


def _tables(query: str) -> set[str]:
    tree = sqlglot.parse_one(query, read="spark")
    hints = {id(table) for hint in tree.find_all(exp.Hint) for table in hint.find_all(exp.Table)}
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    return {table.name for table in tree.find_all(exp.Table) if id(table) not in hints} - own


IMPORT_ALONE = """
import sys
sys.modules.update(dict.fromkeys(("duckdb", "msgspec", "pyarrow")))
import urteil.harness.verify.guarantees
"""


def test_guarantees_are_read_without_the_labs_packages() -> None:
    """The simulation judges by their reference checks on a Python that has none of these."""
    subprocess.run([sys.executable, "-c", IMPORT_ALONE], check=True)


@pytest.mark.parametrize("guarantee", GUARANTEES.values(), ids=lambda guarantee: guarantee.name)
def test_reads_are_the_tables_of_the_queries(guarantee: Guarantee) -> None:
    tables = {name for name in _declared(guarantee) if "." not in name}
    assert tables == _tables(guarantee.judged_violations()) | _tables(guarantee.opportunities)
    assert tables <= {*SCHEMAS, *DERIVED, *STAGES}


@pytest.mark.parametrize("guarantee", GUARANTEES.values(), ids=lambda guarantee: guarantee.name)
def test_reads_are_the_columns_with_sources_of_their_own(guarantee: Guarantee) -> None:
    tree = sqlglot.parse_one(guarantee.judged_violations(), read="spark")
    columns = {column.name for column in tree.find_all(exp.Column)} & WITH_SOURCES
    declared = [name.split(".") for name in _declared(guarantee) if "." in name]
    assert {column for _, column in declared} == columns
    assert all(column in DERIVED[table].columns_made_of for table, column in declared)


def test_sources_of_derived_tables_are_tables_of_evidence() -> None:
    for table in DERIVED.values():
        assert table.columns_made_of.keys() <= set(table.schema.names)
        sources = {source for made_of in table.columns_made_of.values() for source in made_of}
        assert {*table.made_of, *sources} <= SCHEMAS.keys()


@pytest.mark.parametrize("guarantee", GUARANTEES.values(), ids=lambda guarantee: guarantee.name)
def test_excuses_name_declared_sub_kinds(guarantee: Guarantee) -> None:
    assert all(meaning and not meaning.endswith(".") for meaning in guarantee.sub_kinds.values())
    conditions = " ".join(excuse.when for excuse in guarantee.excuses)
    named = re.findall(r"x\.sub_kind (?:=|<>) '([^']+)'", conditions)
    assert set(named) <= guarantee.sub_kinds.keys()


@pytest.mark.parametrize("guarantee", GUARANTEES.values(), ids=lambda guarantee: guarantee.name)
def test_fields_of_a_declaration_agree(guarantee: Guarantee) -> None:
    assert all(excuse.reason and "'" not in excuse.reason for excuse in guarantee.excuses)
    assert not guarantee.copies_lost_elsewhere or guarantee.excused_by_times
    assert not (guarantee.failed_lab_excuses and guarantee.host_load_excuses)


def test_ranks_are_unique_within_a_subject() -> None:
    for subject, guarantees in SUBJECTS.items():
        ranks = [guarantee.rank for guarantee in guarantees]
        assert len(ranks) == len(set(ranks)), subject


def test_every_occasion_is_that_of_a_guarantee() -> None:
    assert {guarantee.occasion for guarantee in GUARANTEES.values()} == {None, *Occasion}


def test_no_scenario_requires_what_it_may_not_show() -> None:
    required = {name for scenario in SCENARIOS.values() for name in scenario.guarantees}
    assert not {name for name in required if GUARANTEES[name].not_required}


def test_guarantee_without_reference_check_or_reason_is_an_error() -> None:
    with pytest.raises(ValueError, match="lost_write has to declare either its reference check"):
        replace(GUARANTEES["lost_write"], reference=None)
    with pytest.raises(ValueError, match="the reason why none makes sense"):
        replace(GUARANTEES["lost_write"], no_reference="both")
