"""The page of the evidence tables."""

from __future__ import annotations

import pyarrow as pa

from docs.reference_pages.markdown import code, codes, page, table
from urteil.harness.evidence.columns import COUNT_END, Column, Table, When
from urteil.harness.evidence.schema import TABLES

ABOUT = """\
Every table of a run's evidence with its columns. Each table is a folder of Parquet files,
`evidence/TABLE/*.parquet`. Null means unknown or none unless a column says otherwise; times end in
`_ns` and are CLOCK_MONOTONIC. [How evidence is made](../guide/evidence.md) explains journals,
payloads, damage, and how rows belong together. This page is generated from
`harness/evidence/schema.py` by `make docs`."""


def render() -> dict[str, str]:
    index = table(
        ("table", "a row is"),
        (
            (f"[{evidence_table.name}](#{evidence_table.name})", evidence_table.meaning)
            for evidence_table in TABLES.values()
        ),
    )
    return {"evidence.md": page("Evidence tables", ABOUT, index, *map(_section, TABLES.values()))}


def _section(evidence_table: Table) -> str:
    rows = [(code(column.name), _type(column), column.meaning, _values(column))
            for column in evidence_table.columns]  # fmt: skip
    head = ("column", "type", "meaning", "values")
    return f"## {evidence_table.name}\n\n{evidence_table.meaning}\n\n{table(head, rows)}"


def _type(column: Column) -> str:
    return (
        str(column.type).replace("bool_", "bool") if not pa.types.is_string(column.type) else "text"
    )


def _values(column: Column) -> str:
    parts = []
    if column.words:
        parts.append(codes(sorted(column.words)))
    if column.form is not None:
        parts.append(f"JSON: {column.form.text}")
    if column.least is not None:
        parts.append(f"at least {column.least}")
    if column.most is not None and column.most < COUNT_END // 1_000_000:
        parts.append(f"at most {column.most}")
    conditions = (column.required, column.identifies)
    if True in conditions:
        parts.append("not null")
    else:
        parts += [f"not null {when.text}" for when in conditions if isinstance(when, When)]
    if column.uniform:
        parts.append("null in all rows of a file or in none")
    return "; ".join(parts)
