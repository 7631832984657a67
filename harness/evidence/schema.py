"""The tables of evidence of a run: the contract between collection and verification.

Each table and column is declared once, in `client_tables` or `cluster_tables`, with its meaning and
with the values that validation accepts. Times are CLOCK_MONOTONIC in ns unless a column says
otherwise. docs/reference/evidence.md is derived from the declarations.
"""

from __future__ import annotations

import pyarrow as pa

from urteil.harness.evidence import client_tables, cluster_tables
from urteil.harness.evidence.columns import RUN, Table

TABLES: dict[str, Table] = {
    table.name: table.led_by(RUN) for table in (*client_tables.TABLES, *cluster_tables.TABLES)
}
"""All declarations by name, each with the column `run` in front."""

SCHEMAS: dict[str, pa.Schema] = {name: table.schema for name, table in TABLES.items()}
"""Table name to its Arrow schema. Every part file of `evidence/<table>/` has these columns."""
