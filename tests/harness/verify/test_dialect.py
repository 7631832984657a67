"""DuckDB's dialect of the queries is what sqlglot translates them to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest
import sqlglot
from sqlglot import ErrorLevel, exp

from urteil.harness.clients.applications import application_of
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify import shared_tables
from urteil.harness.verify.derived.tables import Derived
from urteil.harness.verify.engines.dialect import to_duckdb
from urteil.harness.verify.engines.engine import Duck, open_views
from urteil.harness.verify.expected_outputs import MADE_UP_EXPECTED
from urteil.harness.verify.guarantees import GUARANTEES

DECIMAL = re.compile(r"(?<![\w.'])\d+\.\d+(?![\de])")


def _expected(stage: str) -> list[str]:
    """The queries of the results of all applications, for the stage that they are part of."""
    if stage != "expected_outputs":
        return [""]
    queries = {MADE_UP_EXPECTED}
    for scenario in SCENARIOS.values():
        application = application_of(scenario.workload)
        if application is not None and application.expected is not None:
            queries.add(application.expected(scenario))
    return sorted(queries)


def _queries() -> Iterator[str]:
    for name, shared in shared_tables.STAGES.items():
        only = "AND 1 = 0" if name == "keyed" else ""
        query = shared.query.replace("{in_transactions}", "").replace("{only}", only)
        query = query.replace("{scatter}", "").replace("{gather}", "")
        yield from (query.replace("{expected}", expected) for expected in _expected(name))
    for guarantee in GUARANTEES.values():
        yield guarantee.tally()
        yield guarantee.first(100)


def test_duckdb_takes_every_query(tmp_path: Path) -> None:
    engine = Duck(tmp_path)
    open_views(engine, tmp_path, Derived({}))
    shared_tables.build(engine)
    for guarantee in GUARANTEES.values():
        fields = {"opportunities": 0, "violations": 0, "permitted": 0}
        assert engine.query(guarantee.tally()) in ([fields], [fields | {"opportunities": None}])
        assert engine.query(guarantee.first(100)) == []
    engine.close()


def test_no_query_has_a_decimal_literal() -> None:
    """Spark computes a DECIMAL of it, DuckDB a double: 1e9 is a double in both."""
    decimals = [match[0] for query in _queries() for match in DECIMAL.finditer(query)]
    assert decimals == []


def _by_sqlglot(query: str) -> exp.Expression:
    tree = sqlglot.parse_one(query, read="spark").transform(_narrow, copy=False)
    return sqlglot.parse_one(tree.sql("duckdb", unsupported_level=ErrorLevel.IGNORE), read="duckdb")


def _narrow(node: exp.Expression) -> exp.Expression:
    total = node.this if isinstance(node, exp.Window) else node
    inside = isinstance(node.parent, exp.Window) and node.arg_key == "this"
    if not isinstance(total, exp.Sum) or inside:
        return node
    return exp.Cast(this=node.copy(), to=exp.DataType.build("BIGINT"))


def _plain(tree: exp.Expression) -> str:
    """Without comments, the order of NULLs, which is a setting, and the guard of a quotient; a
    concatenation, of which applications pass no NULL, with operators."""
    for ordered in tree.find_all(exp.Ordered):
        ordered.set("nulls_first", None)
    for quotient in list(tree.find_all(exp.Div)):
        if isinstance(quotient.expression, exp.Nullif):
            quotient.set("expression", quotient.expression.this)
    for call in list(tree.find_all(exp.Concat)):
        first, *others = call.expressions
        call.replace(reduce(lambda a, b: exp.DPipe(this=a, expression=b), others, first))
    return str(tree.sql("duckdb", comments=False))


@pytest.mark.thorough
def test_every_query_is_translated_as_sqlglot_does() -> None:
    for query in _queries():
        translated = sqlglot.parse_one(to_duckdb(query), read="duckdb")
        assert _plain(translated) == _plain(_by_sqlglot(query)), query


def test_dialect_keeps_literals_and_casts_sums_to_bigint() -> None:
    translation = to_duckdb(
        "SELECT 'DIV `SUM(' AS a, SUM(SUM(x)) OVER (PARTITION BY (y)) DIV 2 FROM t"
    )
    inner = "CAST(SUM(CAST(SUM(x) AS BIGINT)) OVER (PARTITION BY (y)) AS BIGINT)"
    assert translation == f"SELECT 'DIV `SUM(' AS a, {inner} // 2 FROM t"


def test_unclosed_parenthesis_is_an_error() -> None:
    with pytest.raises(ValueError, match="never closed"):
        to_duckdb("SELECT SUM(x FROM t")
