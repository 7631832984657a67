"""Judge a run: its evidence in, its verdict out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from urteil.harness.verify.result import Result


def judge(
    run_dir: Path,
    *,
    engine: str = "spark",
    master: str | None = None,
    session: Any = None,
) -> Result:
    """Judge the run in `run_dir` and write its `result.json`.

    Reads `scenario.json`, `run.json` and `evidence/`. `engine` is `spark` or `duckdb`; `session`
    is a Spark session to use (`urteil.harness.verify.engines.spark.warm`), else one is started on
    `master` and stopped. A judgement that hangs is interrupted, and UNKNOWN (watch.py).

    Raises ValueError for an unknown engine, OSError and msgspec errors when the folder is no run; a
    check that raises is a guarantee of unknown status, not an exception.
    """
    from urteil.harness.verify.judgement import judge_run
    from urteil.harness.verify.watch import in_time

    def work() -> Result:
        return judge_run(Path(run_dir), engine=engine, master=master, session=session)

    return in_time(work, Path(run_dir), engine)
