"""Runs a scenario: plays it, collects its evidence, and writes a verdict even after failures."""

from __future__ import annotations

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

from urteil.harness.host_description import describe_host
from urteil.harness.preload import Preload
from urteil.harness.run.folder import new_run_dir
from urteil.harness.run.judging import Log, discard_data, discard_line, judge_collected
from urteil.harness.run.play import Play
from urteil.harness.run.playable import NotPlayable, fit_to_releases
from urteil.harness.run.steps import new_facts
from urteil.harness.scenario import RunFacts, Scenario, save
from urteil.harness.schedule import settle_schedule
from urteil.harness.targets.external import PREFIX, fit_scenario, load_external
from urteil.harness.verify.engines.choice import check_master, needs_spark
from urteil.harness.verify.engines.spark import Warming, warm
from urteil.harness.verify.result import Result

UNENDED = "the run did not come to its end"
TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
}
"""Settings of topics on the lab's own brokers, which checks assume (verify/parts.py)."""


def run_scenario(
    scenario: Scenario,
    *,
    out: Path = Path("runs"),
    engine: str = "auto",
    master: str | None = None,
    command: str | None = None,
    log: Log = discard_line,
    preload: Sequence[str] = (),
) -> tuple[Path, Result]:
    """Play `scenario`, collect its evidence and judge it.

    Returns the run's folder and its result, which is also on disk as result.json. Failures of the
    lab make the result UNKNOWN with the reason. The schedule is drawn first; an impossible one
    raises ValueError, and so does a `master` beside DuckDB. NotPlayable is raised for a scenario
    that the target cannot play; its run leaves no folder. KeyboardInterrupt (also by SIGTERM, in
    the main thread) ends cluster and clients and is raised again; `judge_again` can judge what was
    recorded. Modules to `preload` are imported during the load, as the judgement's own are.
    """
    check_master(engine, master)
    run = secrets.token_hex(4)
    scenario = fit_to_releases(settle_schedule(_isolate_names(scenario, run)))
    run_dir = new_run_dir(out, scenario)
    log(f"run {run_dir}")
    facts = new_facts(scenario, command or _command(scenario), run=run)
    facts.problems.append(UNENDED)
    facts.healed = False
    facts.versions["machine"] = describe_host()
    warming: list[Warming] = []
    preloads: list[Preload] = []

    def prepare_judgement() -> None:
        on_spark = needs_spark(engine, master=master, declared=scenario.engine)
        if on_spark:
            warming.append(warm(master))
        preloads.append(Preload(preload, queries=not on_spark))

    try:
        with _interrupt_on_sigterm():
            _play(scenario, run_dir, facts, prepare_judgement, log)
            for preloading in preloads:
                preloading.stop()
            result = judge_collected(
                run_dir, facts, engine=engine, master=master, warming=warming, log=log
            )
            discard_data(run_dir, result)
            return run_dir, result
    except NotPlayable:
        shutil.rmtree(run_dir, ignore_errors=True)
        raise
    finally:
        # A thread that imports C++ code aborts a process that ends meanwhile.
        for preloading in preloads:
            preloading.stop()
        for spark in warming:
            spark.stop()


def _isolate_names(scenario: Scenario, run: str) -> Scenario:
    """The scenario for a standing cluster, with topics and groups of the run's own. Topics carry
    the settings that checks depend on, since the brokers' defaults are unknown. Raises ValueError
    as `load_external` and `fit_scenario` do."""
    if not scenario.target.startswith(PREFIX):
        return scenario
    scenario = fit_scenario(scenario, load_external(Path(scenario.target.removeprefix(PREFIX))))
    replace, load = msgspec.structs.replace, scenario.workload
    topics = tuple(
        replace(topic, name=f"{topic.name}-{run}", config=TOPIC_DEFAULTS | topic.config)
        for topic in load.topics
    )
    load = replace(load, topics=topics, group=f"{load.group}-{run}")
    return replace(scenario, workload=load)


def _play(
    scenario: Scenario,
    run_dir: Path,
    facts: RunFacts,
    on_load: Callable[[], None],
    log: Log,
) -> None:
    """Play the run. run.json exists from the start, and marks the run as unfinished until its
    end."""
    save(run_dir / "run.json", facts)
    try:
        Play(scenario, run_dir, facts, log, on_load).run()
        facts.problems.remove(UNENDED)
    except KeyboardInterrupt:
        facts.problems.append("interrupted")
        raise
    finally:
        save(run_dir / "run.json", facts)


def _command(scenario: Scenario) -> str:
    words = ["urteil", "run", scenario.name, "--seed", str(scenario.seed)]
    words += ["--target", scenario.target] if scenario.target != "urteil" else []
    words += ["--runtime", scenario.runtime] if scenario.runtime != "process" else []
    words += ["--hosts", scenario.hosts] if scenario.hosts else []
    words += ["--mutant", scenario.mutant] if scenario.mutant else []
    words += ["--coverage"] if scenario.coverage else []
    return shlex.join(words)


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
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
