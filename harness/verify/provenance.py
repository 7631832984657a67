"""The evidence behind the tables that guarantees read."""

from __future__ import annotations

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.verify.derived.tables import DERIVED
from urteil.harness.verify.shared_tables import STAGES


def sources(name: str) -> tuple[str, ...]:
    """The evidence tables behind a table,
    or behind a derived table's column (`partitions.trimmed`)."""
    table, _, column = name.partition(".")
    if column:
        return DERIVED[table].columns_made_of[column]
    if table in SCHEMAS:
        return (table,)
    return DERIVED[table].made_of if table in DERIVED else STAGES[table].made_of
