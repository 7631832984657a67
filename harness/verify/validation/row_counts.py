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

_PLACELESS = """(sends.outcome IN ('info', 'fail') AND sends.partition IS NULL
  AND sends.partition_intended IS NULL
  AND sends.topic_id IN (SELECT partitions.topic_id FROM partitions WHERE partitions.in_run = 1))"""
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


def _rows_without_values(table: Table) -> RowCount:
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
        source="epoch_extents extents"
        if is_held
        else f"{table.name} checked WHERE {table.lacks_required('checked')}",
        aggregate="SUM(extents.blank)" if is_held else "COUNT(*)",
    )


def _rows_without_target(table: Table, to: Reference) -> RowCount:
    keys = ", ".join(f"targets.{name}" for name in to.columns)
    equal = " AND ".join(f"known_rows.{name} = checked.{name}" for name in to.columns)
    last = to.columns[-1]
    return RowCount(
        noun=table.row,
        flaw=f"of {to.text} that evidence/{to.table} does not have",
        source=f"{table.name} checked LEFT JOIN (SELECT DISTINCT {keys} FROM {to.table} targets) "
        f"known_rows ON {equal} WHERE known_rows.{last} IS NULL"
        + (f" AND checked.{last} IS NOT NULL" if to.is_optional else ""),
        table=table.name,
        damages=to.table if to.is_damage else None,
    )


def _declared_counts() -> Iterator[RowCount]:
    for table in TABLES.values():
        if any(isinstance(column.required, When) for column in table.columns):
            yield _rows_without_values(table)
        backwards = [
            f"checked.{column.name} < checked.{begin}"
            for column in table.columns
            for begin in column.not_before
        ]
        if backwards:
            yield RowCount(
                noun=table.row,
                flaw=f"ended before beginning: a clock went back (evidence/{table.name})",
                source=f"{table.name} checked WHERE {' OR '.join(backwards)}",
                table=table.name,
                of_clock=True,
            )
        yield from (_rows_without_target(table, reference) for reference in table.references)


_STRAY = "without a partition of a topic in run.json"

COUNTS = (
    *_declared_counts(),
    RowCount(
        noun="send",
        flaw=_STRAY,
        source=f"""sends LEFT JOIN partitions ON sends.topic_id = partitions.topic_id
  AND COALESCE(sends.partition, sends.partition_intended) = partitions.partition
WHERE (partitions.p IS NULL OR (partitions.in_run = 0 AND partitions.gone = 0))
  AND NOT COALESCE({_PLACELESS}, FALSE)""",
        table="sends",
        damages="sends",
    ),
    RowCount(
        noun="unacknowledged send",
        flaw=_STRAY,
        source=f"sends WHERE {_PLACELESS}",
        table="sends",
        damages="sends",
        of_imports=False,
    ),
    RowCount(
        noun="read",
        flaw=_STRAY,
        source="""reads LEFT JOIN partitions ON reads.topic_id = partitions.topic_id
  AND reads.partition = partitions.partition WHERE partitions.p IS NULL
    OR (partitions.in_run = 0 AND partitions.gone = 0)""",
        table="reads",
        damages="reads",
    ),
    RowCount(
        noun="send",
        flaw="doubled in evidence/sends",
        source="slots WHERE slots.acked > 1",
        table="sends",
        damages="sends",
    ),
    RowCount(
        noun="value_id",
        flaw="of several sends (evidence/sends): each record needs one that no other has",
        source="""(SELECT records.value_id FROM irregular_values records WHERE records.sent = 1
  GROUP BY records.value_id
  HAVING MIN(records.client) <> MAX(records.client)
    OR MIN(records.op) <> MAX(records.op)) doubled_values""",
        table="sends",
        damages="sends",
    ),
    RowCount(
        noun="read",
        flaw="at a place in a poll that another row has (evidence/reads)",
        source="gaps",
        aggregate="SUM(gaps.again)",
        table="reads",
        damages="reads",
    ),
    RowCount(
        noun="stored record",
        flaw="beyond the end of their log (evidence/logs)",
        source="epoch_extents extents",
        aggregate="SUM(extents.beyond)",
        table="replicas",
    ),
    RowCount(
        noun="record",
        flaw="of committed transactions beyond every final pass of readers of committed records",
        source="""committed JOIN records ON records.value_id = committed.value_id
JOIN (SELECT DISTINCT cover.p FROM cover WHERE cover.mask_rc <> 0) covered_partitions
  ON covered_partitions.p = committed.p
JOIN partitions ON partitions.p = committed.p
WHERE records.rc_asked = 0 AND committed.off >= partitions.log_start""",
        table="txns",
    ),
)

_QUERY = " UNION ALL ".join(
    f"SELECT {number} AS what, -1 AS n, {count.aggregate} AS found FROM {count.source}"
    for number, count in enumerate(COUNTS)
)
_IN_WINDOWS = """
SELECT -1 AS what, windows.n, COUNT(*) AS found FROM sends
JOIN windows ON sends.invoke_ns < windows.end_ns
  AND GREATEST(sends.invoke_ns, COALESCE(sends.complete_ns, 0)) >= windows.begin_ns
  GROUP BY windows.n
"""
"""Sends that clients made or awaited during each fault: one that waits for the outcome of every
record or transaction makes none while writes stand still."""


def count_rows(engine: Engine, facts: RunFacts, report: ValidationReport) -> dict[int, int]:
    """Report each count that is not zero. Returns the number of sends that were made or awaited
    during each fault."""
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
