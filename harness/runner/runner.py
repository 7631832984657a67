"""From a scenario to a verdict on disk, whatever happens on the way."""

from __future__ import annotations

import fcntl
import secrets
import shlex
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import msgspec

from urteil.harness.history.collect import collect
from urteil.harness.machine import machine
from urteil.harness.preload import Preload
from urteil.harness.runner.folder import new_run_dir
from urteil.harness.runner.play import Play
from urteil.harness.scenario import RunFacts, Scenario, load_facts, save
from urteil.harness.schedule import settled
from urteil.harness.stopwatch import Stopwatch
from urteil.harness.targets.external import PREFIX, fitted, load_external
from urteil.harness.verify import judge
from urteil.harness.verify.engines.choice import needs_spark
from urteil.harness.verify.engines.spark import Warming, warm
from urteil.harness.verify.result import Result, Verdict
from urteil.harness.workload.client import boot_id

Log = Callable[[str], None]
JUDGES = "judge.lock"
UNENDED = "the run did not come to its end"
TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
}
"""What topics have on the lab's own brokers, and checks take for granted (verify/parts.py)."""


def silent(_line: str) -> None:
    """A log that nobody reads."""


def run_scenario(
    scenario: Scenario,
    *,
    out: Path = Path("runs"),
    engine: str = "auto",
    master: str | None = None,
    command: str | None = None,
    log: Log = silent,
    preload: Sequence[str] = (),
) -> tuple[Path, Result]:
    """Play `scenario`, collect its evidence and judge it.

    Its schedule is drawn first (ValueError where that cannot be). Returns the run's folder and its
    result, which is on disk as result.json. Failures of the lab
    make it UNKNOWN with the reason. KeyboardInterrupt (also by SIGTERM, in the main thread) ends
    cluster and clients and is raised on; `judge_again` can judge what was recorded. Modules to
    `preload` are imported beside the load, as the judgement's own are.
    """
    run = secrets.token_hex(4)
    scenario = settled(_named_apart(scenario, run))
    run_dir = new_run_dir(out, scenario)
    log(f"run {run_dir}")
    facts = RunFacts(
        run=run,
        seed=scenario.seed,
        scenario=scenario.name,
        target=scenario.target,
        runtime=scenario.runtime,
        boot_id=boot_id(),
        command=command or _command(scenario),
        problems=[UNENDED],
        healed=False,
        mutant=scenario.mutant,
        versions={"machine": machine()},
    )
    warming: list[Warming] = []
    preloads: list[Preload] = []

    def under_load() -> None:
        on_spark = needs_spark(engine, master=master, declared=scenario.engine)
        if on_spark:
            warming.append(warm(master))
        preloads.append(Preload(preload, queries=not on_spark))

    try:
        with _terminated_as_interrupt():
            _play(scenario, run_dir, facts, under_load, log)
            for one in preloads:
                one.stop()
            return run_dir, _judge(run_dir, facts, engine, master, warming, log)
    finally:
        for spark in warming:
            spark.stop()


def _named_apart(scenario: Scenario, run: str) -> Scenario:
    """In a cluster that stays, topics and groups are the run's own; others' are not touched.

    What its brokers have for defaults is not known: topics carry those that checks depend on.
    ValueError as `load_external` and `fitted` raise it.
    """
    if not scenario.target.startswith(PREFIX):
        return scenario
    scenario = fitted(scenario, load_external(Path(scenario.target.removeprefix(PREFIX))))
    replace, load = msgspec.structs.replace, scenario.workload
    topics = tuple(
        replace(one, name=f"{one.name}-{run}", config=TOPIC_DEFAULTS | one.config)
        for one in load.topics
    )
    load = replace(load, topics=topics, group=f"{load.group}-{run}")
    return replace(scenario, workload=load)


def judge_again(run_dir: Path, *, engine: str = "auto", master: str | None = None) -> Result:
    """Judge a recorded run again; its evidence is collected first where that was not done."""
    facts = load_facts(run_dir)
    return _judge(run_dir, facts, engine, master, (), silent)


def _play(
    scenario: Scenario,
    run_dir: Path,
    facts: RunFacts,
    under_load: Callable[[], None],
    log: Log,
) -> None:
    """run.json is there from the start, and says that the run did not end until it did."""
    save(run_dir / "run.json", facts)
    try:
        Play(scenario, run_dir, facts, log, under_load).run()
        facts.problems.remove(UNENDED)
    except KeyboardInterrupt:
        facts.problems.append("interrupted")
        raise
    finally:
        save(run_dir / "run.json", facts)


def _judge(
    run_dir: Path,
    facts: RunFacts,
    engine: str,
    master: str | None,
    warming: Sequence[Warming],
    log: Log,
) -> Result:
    """Evidence where it is missing, then the verdict; a check that raises makes it UNKNOWN. One at
    a time: others who judge the run, `urteil verify` say, work in the same folder."""
    try:
        with (run_dir / JUDGES).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _collect(run_dir, facts, log)
            session = warming[0].session() if warming else None
            log("judging")
            result = judge(run_dir, engine=engine, master=master, session=session)
    except Exception as failure:
        result = _unknown(run_dir, facts, f"{type(failure).__name__}: {failure}")
    if result.verdict is Verdict.PASS:
        for data in run_dir.glob("nodes/b*/data"):
            shutil.rmtree(data, ignore_errors=True)
    return result


def _collect(run_dir: Path, facts: RunFacts, log: Log) -> None:
    """Evidence from journals, disks and ZooKeeper, unless it is there already."""
    if any((run_dir / "evidence" / "manifest").glob("*.parquet")):
        return
    log("collecting the evidence")
    with Stopwatch(facts.seconds, facts.spent)("collect"):
        collected = collect(run_dir)
    facts.problems += collected.problems
    save(run_dir / "run.json", facts)


def _unknown(run_dir: Path, facts: RunFacts, failure: str) -> Result:
    """The result of a run that could not be judged, written where a judged one would be."""
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


def _command(scenario: Scenario) -> str:
    words = ["urteil", "run", scenario.name, "--seed", str(scenario.seed)]
    words += ["--target", scenario.target] if scenario.target != "urteil" else []
    words += ["--runtime", scenario.runtime] if scenario.runtime != "process" else []
    words += ["--mutant", scenario.mutant] if scenario.mutant else []
    return shlex.join(words)


@contextmanager
def _terminated_as_interrupt() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does; outside the main thread signals stay as they are."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
