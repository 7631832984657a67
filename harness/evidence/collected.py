"""What a collection has written so far: rows by table, the manifest, and problems."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from urteil.chaos.topology import EAST
from urteil.harness.evidence.journal_rows import Row
from urteil.harness.evidence.schema import TABLES
from urteil.harness.evidence.table_writer import Evidence

KEPT = frozenset(table.name for table in TABLES.values() if table.is_written_live)
"""Tables with parts that the lab wrote during the run."""


@dataclass(slots=True)
class Collected:
    """`rows` by table. `problems` are sentences for the verdict: evidence that is missing."""

    rows: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    manifest: list[Row] = field(default_factory=list)

    def count_rows(self, evidence: Evidence) -> None:
        """Count the rows of one source. Each of its parts has a row in the manifest."""
        for table, rows in evidence.counts().items():
            self.rows[table] = self.rows.get(table, 0) + rows
        for file, rows in evidence.rows_by_file().items():
            self.note(file, "part", rows)

    def count_kept_parts(self, run_dir: Path) -> None:
        """Count parts that existed before. Validation reports damaged ones."""
        noted = {row["file"] for row in self.manifest}
        for table in KEPT:
            for part in sorted((run_dir / "evidence" / table).glob("*.parquet")):
                file, rows = str(part.relative_to(run_dir)), 0
                with suppress(pa.ArrowInvalid):
                    rows = pq.ParquetFile(part).metadata.num_rows
                if rows and file not in noted:
                    self.rows[table] = self.rows.get(table, 0) + rows
                    self.note(file, "part", rows)

    def note(
        self,
        file: str,
        kind: str,
        rows: int,
        *,
        first: int | None = None,
        last: int | None = None,
        damage: Sequence[str] = (),
        excused: bool = False,
    ) -> None:
        """Add one row to the manifest. Damage that is not excused is also a problem."""
        self.manifest.append(
            {
                "file": file,
                "kind": kind,
                "rows": rows,
                "first_sequence": first,
                "last_sequence": last,
                "ended_properly": not damage,
            }
        )
        if not excused:
            self.problems.extend(f"{file}: {what}" for what in damage)


def cluster_folder(run_dir: Path, place: str) -> Path:
    """The folder of a cluster: the run's own, or `west/` in it."""
    return run_dir if place == EAST else run_dir / place
