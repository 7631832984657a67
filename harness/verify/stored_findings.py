"""Stores all findings of a guarantee as Parquet if its result has only the first ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from urteil.harness.verify.engines.engine import Engine
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.result import GuaranteeResult


def violated_sub_kinds(run_dir: Path, guarantee_result: GuaranteeResult) -> dict[str, int | None]:
    """The sub-kinds of a guarantee's violations, each with the earliest time of its findings (None
    without times). Without a file of all findings, those in the result count."""
    files = sorted((run_dir / "findings" / guarantee_result.name).glob("*.parquet"))
    if files and guarantee_result.violations + guarantee_result.permitted > len(
        guarantee_result.findings
    ):
        table = pq.read_table(files, columns=["sub_kind", "permitted", "at_ns"])
        table = table.filter(pc.is_null(table["permitted"]))
        firsts = table.group_by("sub_kind").aggregate([("at_ns", "min")]).to_pylist()
        return {row["sub_kind"]: row["at_ns_min"] for row in firsts}
    kinds: dict[str, int | None] = {}
    for finding in guarantee_result.findings:
        if finding.permitted is None:
            times = [at for at in (kinds.get(finding.sub_kind), finding.at_ns) if at is not None]
            kinds[finding.sub_kind] = min(times, default=None)
    return kinds


def save_all_findings(engine: Engine, run_dir: Path, judged: Iterable[GuaranteeResult]) -> None:
    """Write all findings of each guarantee that has more than its result contains.

    They are the rows of `findings/NAME/*.parquet`, and `findings/NAME.sql` is the query (Spark SQL
    over the views of the verification). If they cannot be written, that file has the reason.
    """
    folder = run_dir / "findings"
    shutil.rmtree(folder, ignore_errors=True)
    for guarantee_result in judged:
        if guarantee_result.violations + guarantee_result.permitted <= len(
            guarantee_result.findings
        ):
            continue
        query = GUARANTEES[guarantee_result.name].judged_violations()
        note = ""
        try:
            engine.store(query, folder / guarantee_result.name)
        except Exception as failure:
            note = f"-- could not be written: {' '.join(str(failure).split())[:300]}\n"
        folder.mkdir(exist_ok=True)
        (folder / f"{guarantee_result.name}.sql").write_text(f"{note}{query.strip()}\n")
