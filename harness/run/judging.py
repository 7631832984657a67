"""The judgement of a run that was played, or of an imported history."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from urteil.harness.scenario import RunFacts, load_facts, save
from urteil.harness.stopwatch import Stopwatch
from urteil.harness.verify import judge
from urteil.harness.verify.engines.spark import Warming
from urteil.harness.verify.result import Result, Verdict

Log = Callable[[str], None]
LOCK = "judge.lock"
COLLECTING = "collecting the evidence"
"""Logged when the nodes and clients of the run have ended."""


def discard_line(_line: str) -> None:
    """A log function that discards its lines."""


def judge_again(run_dir: Path, *, engine: str = "auto", master: str | None = None) -> Result:
    """Judge a recorded run again. Collects missing evidence first."""
    facts = load_facts(run_dir)
    result = judge_collected(run_dir, facts, engine=engine, master=master)
    discard_data(run_dir, result)
    return result


def judge_collected(
    run_dir: Path,
    facts: RunFacts,
    *,
    engine: str = "auto",
    master: str | None = None,
    warming: Sequence[Warming] = (),
    log: Log = discard_line,
) -> Result:
    """Collect missing evidence, then judge. A check that raises makes the run UNKNOWN.

    A lock admits one judgement of a run at a time, since all of them work in the same folder.
    """
    try:
        with (run_dir / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _collect(run_dir, facts, log)
            session = warming[0].session() if warming else None
            log("judging")
            result = judge(run_dir, engine=engine, master=master, session=session)
            _count_rare_states(run_dir, facts, result, log)
    except Exception as failure:
        result = write_unjudged(run_dir, facts, f"{type(failure).__name__}: {failure}")
    return result


def _count_rare_states(run_dir: Path, facts: RunFacts, result: Result, log: Log) -> None:
    """Write `states.json`, and the duration of the counting into `result` and its file. A failure
    is only logged: the counts judge nothing."""
    from urteil.harness.verify.rare_states.counting import save_counts

    try:
        with Stopwatch(result.seconds, result.phases)("rare states"):
            save_counts(run_dir, facts)
        save(run_dir / "result.json", result)
    except Exception as failure:
        log(f"the rare states cannot be counted: {type(failure).__name__}: {failure}")


def discard_data(run_dir: Path, result: Result) -> None:
    """Remove the brokers' log directories of a run that passed: its evidence remains."""
    if result.verdict is Verdict.PASS:
        for data in (*run_dir.glob("nodes/b*/data"), *run_dir.glob("west/nodes/b*/data")):
            shutil.rmtree(data, ignore_errors=True)


def _collect(run_dir: Path, facts: RunFacts, log: Log) -> None:
    """Evidence from journals, disks and ZooKeeper, unless it is there already."""
    if any((run_dir / "evidence" / "manifest").glob("*.parquet")):
        return
    from urteil.harness.evidence.collection import collect

    log(COLLECTING)
    with Stopwatch(facts.seconds, facts.spent)("collect"):
        collected = collect(run_dir)
    facts.problems += collected.problems
    save(run_dir / "run.json", facts)


def write_unjudged(run_dir: Path, facts: RunFacts, failure: str) -> Result:
    """Write and return the result of a run that could not be judged."""
    result = Result(
        verdict=Verdict.UNKNOWN,
        reasons=[*facts.problems, f"the run could not be judged: {failure}"],
        seed=facts.seed,
        scenario=facts.scenario,
        target=facts.target,
        runtime=facts.runtime,
        mutant=facts.mutant,
        command=facts.command,
        run=facts.run,
        engine="none",
        versions=facts.versions,
        seconds=facts.seconds,
        phases=facts.spent,
        counts={},
        guarantees=[],
        faults=[],
    )
    save(run_dir / "result.json", result)
    return result
