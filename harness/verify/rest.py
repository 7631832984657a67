"""Findings beyond those that a result holds: all of them as Parquet, beside the query."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from urteil.harness.verify.engines.engine import Engine
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.result import GuaranteeResult


def save_rest(engine: Engine, run_dir: Path, judged: Iterable[GuaranteeResult]) -> None:
    """Write every finding of a guarantee with more than its result holds.

    They are rows of `findings/NAME/*.parquet`; `findings/NAME.sql` is the query (Spark SQL, over
    the views of the verification). One that cannot be written leaves its reason in that file.
    """
    folder = run_dir / "findings"
    shutil.rmtree(folder, ignore_errors=True)
    for one in judged:
        if one.violations + one.permitted <= len(one.findings):
            continue
        query = GUARANTEES[one.name].judged()
        note = ""
        try:
            engine.store(query, folder / one.name)
        except Exception as failure:
            note = f"-- could not be written: {' '.join(str(failure).split())[:300]}\n"
        folder.mkdir(exist_ok=True)
        (folder / f"{one.name}.sql").write_text(f"{note}{query.strip()}\n")
