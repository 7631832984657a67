"""Rows of another run among those of this one. They put in doubt what rests on their table."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.scenario import RunFacts
from urteil.harness.verify import evidence
from urteil.harness.verify.part_cache import once_a_version
from urteil.harness.verify.validation import column_bounds
from urteil.harness.verify.validation.cell_checks import AGAIN


def tables_with_foreign_rows(run_dir: Path, facts: RunFacts) -> dict[str, str]:
    """Tables with rows of several runs, each with the sentence that says so."""
    sentences = {}
    for table in SCHEMAS:
        runs = {run for part in evidence.files(run_dir, table) for run in _runs(part)}
        if len(runs) > 1:
            others = ", ".join(sorted(map(str, runs - {facts.run})))
            sentences[table] = (
                f"evidence/{table}: rows of several runs, of {others} among them: {AGAIN}"
            )
    return sentences


@once_a_version
def _runs(part: Path) -> frozenset[str]:
    """The first and the last name of a run in a part, in the order of text."""
    return frozenset(column_bounds.ends(pq.ParquetFile(part), "run"))
