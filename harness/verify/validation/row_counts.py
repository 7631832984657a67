"""Counts of rows that cannot be judged, in one query on the engine.

Most counts follow from the declarations: required values that are missing, ends before begins, and
references to rows that do not exist. The others relate rows to the run's partitions and to shared
tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from urteil.harness.evidence.columns import Reference, Table, When
from urteil.harness.evidence.schema import TABLES
from urteil.harness.scenario import IMPORTED, RunFacts
from urteil.harness.verify.engines.engine import Engine
from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.validation.report import ValidationReport

_PLACELESS = """(s.outcome IN ('info', 'fail') AND s.partition IS NULL
  AND s.partition_intended IS NULL
  AND s.topic_id IN (SELECT k.topic_id FROM parts k WHERE k.ours = 1))"""
"""Unacknowledged sends of which only the topic is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCount:
    """A number of `noun`s of a table that have a flaw: the SQL that counts them, and the sentence.

    A flaw damages `damages`; without it, it is only a reason. `of_clock`: times do not agree.
    """

    noun: str
    flaw: str
    source: str
    aggregate: str = "COUNT(*)"
    table: str
    damages: str | None = None
    of_clock: bool = False
    of_imports: bool = True


def _lacking(table: Table) -> RowCount:
    groups: dict[When, list[str]] = {}
    for column in table.columns:
        if isinstance(column.required, When):
            groups.setdefault(column.required, []).append(column.name)
    texts = [f"{' or '.join(names)} {when.text}" for when, names in groups.items()]
    is_held = table.name == "replicas"  # `epoch_extents` has counted them
    return RowCount(
        noun=table.row,
        flaw=f"without {', '.join(texts)} (evidence/{table.name})",
        table=table.name,
        damages=table.name,
        source="epoch_extents h"
        if is_held
        else f"{table.name} x WHERE {table.lacks_required('x')}",
        aggregate="SUM(h.blank)" if is_held else "COUNT(*)",
    )


def _dangling(table: Table, to: Reference) -> RowCount:
    keys = ", ".join(f"o.{name}" for name in to.columns)
    equal = " AND ".join(f"k.{name} = x.{name}" for name in to.columns)
    last = to.columns[-1]
    return RowCount(
        noun=table.row,
        flaw=f"of {to.text} that evidence/{to.table} does not have",
        source=f"{table.name} x LEFT JOIN (SELECT DISTINCT {keys} FROM {to.table} o) k ON {equal} "
        f"WHERE k.{last} IS NULL{f' AND x.{last} IS NOT NULL' if to.is_optional else ''}",
        table=table.name,
        damages=to.table if to.is_damage else None,
    )


def _declared() -> Iterator[RowCount]:
    for table in TABLES.values():
        if any(isinstance(column.required, When) for column in table.columns):
            yield _lacking(table)
        backwards = [
            f"x.{column.name} < x.{begin}"
            for column in table.columns
            for begin in column.not_before
        ]
        if backwards:
            yield RowCount(
                noun=table.row,
                flaw=f"ended before beginning: a clock went back (evidence/{table.name})",
                source=f"{table.name} x WHERE {' OR '.join(backwards)}",
                table=table.name,
                of_clock=True,
            )
        yield from (_dangling(table, reference) for reference in table.references)


_STRAY = "without a partition of a topic in run.json"

COUNTS = (
    *_declared(),
    RowCount(
        noun="send",
        flaw=_STRAY,
        source=f"""sends s LEFT JOIN parts p ON s.topic_id = p.topic_id
  AND COALESCE(s.partition, s.partition_intended) = p.partition
WHERE (p.p IS NULL OR (p.ours = 0 AND p.gone = 0)) AND NOT COALESCE({_PLACELESS}, FALSE)""",
        table="sends",
        damages="sends",
    ),
    RowCount(
        noun="unacknowledged send",
        flaw=_STRAY,
        source=f"sends s WHERE {_PLACELESS}",
        table="sends",
        damages="sends",
        of_imports=False,
    ),
    RowCount(
        noun="read",
        flaw=_STRAY,
        source="""reads r LEFT JOIN parts p ON r.topic_id = p.topic_id
  AND r.partition = p.partition WHERE p.p IS NULL OR (p.ours = 0 AND p.gone = 0)""",
        table="reads",
        damages="reads",
    ),
    RowCount(
        noun="send",
        flaw="doubled in evidence/sends",
        source="slots s WHERE s.acked > 1",
        table="sends",
        damages="sends",
    ),
    RowCount(
        noun="value_id",
        flaw="of several sends (evidence/sends): each record needs one that no other has",
        source="""(SELECT o.value_id FROM irregular_values o WHERE o.sent = 1 GROUP BY o.value_id
  HAVING MIN(o.client) <> MAX(o.client) OR MIN(o.op) <> MAX(o.op)) k""",
        table="sends",
        damages="sends",
    ),
    RowCount(
        noun="read",
        flaw="at a place in a poll that another row has (evidence/reads)",
        source="gaps g",
        aggregate="SUM(g.again)",
        table="reads",
        damages="reads",
    ),
    RowCount(
        noun="stored record",
        flaw="beyond the end of their log (evidence/logs)",
        source="epoch_extents h",
        aggregate="SUM(h.beyond)",
        table="replicas",
    ),
    RowCount(
        noun="record",
        flaw="of committed transactions beyond every final pass of readers of committed records",
        source="""committed c JOIN vals v ON v.value_id = c.value_id
JOIN (SELECT DISTINCT k.p FROM cover k WHERE k.mask_rc <> 0) k ON k.p = c.p
WHERE v.rc_asked = 0""",
        table="txns",
    ),
)

_QUERY = " UNION ALL ".join(
    f"SELECT {number} AS what, -1 AS n, {count.aggregate} AS found FROM {count.source}"
    for number, count in enumerate(COUNTS)
)
_IN_WINDOWS = """
SELECT -1 AS what, w.n, COUNT(*) AS found FROM sends s
JOIN windows w ON s.invoke_ns >= w.begin_ns AND s.invoke_ns < w.end_ns GROUP BY w.n
"""


def count_rows(engine: Engine, facts: RunFacts, report: ValidationReport) -> dict[int, int]:
    """Report each count that is not zero. Returns the number of sends in the window of each
    fault."""
    windows: dict[int, int] = {}
    for row in engine.query(f"{_IN_WINDOWS} UNION ALL {_QUERY} ORDER BY what, n"):
        if row["what"] < 0:
            windows[row["n"]] = row["found"]
            continue
        count = COUNTS[row["what"]]
        if not row["found"] or (facts.runtime == IMPORTED and not count.of_imports):
            continue
        reason = f"{count_text(row['found'], count.noun)} {count.flaw}"
        if count.damages:
            report.add_damage(count.damages, reason)
        elif count.of_clock:
            report.add_clocks([reason])
        elif count.table not in facts.withheld:
            report.add([reason])
    return windows
