"""Judge a run: its evidence in, its verdict out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from urteil.harness.verify.result import Result


def judge(
    run_dir: Path,
    *,
    engine: str = "auto",
    master: str | None = None,
    session: Any = None,
) -> Result:
    """Judge the run in `run_dir` and write its `result.json`.

    Reads `scenario.json`, `run.json` and `evidence/`. `engine` is `duckdb`, `spark`, or `auto`,
    which chooses one of them by the run (engines/choice.py). `session` is a Spark session to use
    (`urteil.harness.verify.engines.spark.warm`); without one Spark starts on `master` and stops
    afterwards. A judgement that hangs is interrupted, and UNKNOWN (watchdog.py).

    Raises ValueError for an unknown engine, OSError and msgspec errors when the folder is no run; a
    check that raises is a guarantee of unknown status, not an exception.
    """
    from urteil.harness.scenario import load_scenario
    from urteil.harness.verify.engines.choice import choose
    from urteil.harness.verify.judgement import judge_run
    from urteil.harness.verify.watchdog import in_time

    run_dir = Path(run_dir)
    scenario = load_scenario(run_dir)
    choice = choose(
        engine,
        run_dir,
        master=master,
        session=session,
        declared=scenario.engine,
        scenario=scenario.name,
    )

    def work() -> Result:
        return judge_run(
            run_dir,
            engine=choice.engine,
            master=master,
            session=session if choice.engine == "spark" else None,
            reason=choice.reason,
        )

    return in_time(work, run_dir, choice)
