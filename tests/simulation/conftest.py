"""Seeds, how many and from which on, played by several processes at once."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from urteil.suites.simulation.scenario import Run

SEEDS = 6
IN_DEFAULT = {
    "replication": (2, 3),
    "transactions": (1,),
    "compacted-transactions": (),
    "groups": (1,),
    "compaction": (1,),
    "retention": (1,),
    "administration": (),
    "questions": (1,),
}
"""The seeds of each mix that the default tests play, those of replication with mutants as well. The
others are thorough."""
Sound = Callable[[int, str], "Future[Run]"]
RUNS = pytest.StashKey[list["Run"]]()

if importlib.util.find_spec("simloop") is None:  # the environment of the other tests
    collect_ignore_glob = ["test_*.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simulation")
    group.addoption("--seeds", type=int, help=f"how many seeds (default {SEEDS})")
    group.addoption("--first-seed", type=int, default=1, help="the first of them (default 1)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames and "name" not in metafunc.fixturenames:
        first = metafunc.config.getoption("--first-seed")
        asked = metafunc.config.getoption("--seeds")
        cases = [
            pytest.param(
                mix, first + n, marks=[] if first + n in default else [pytest.mark.thorough]
            )
            for mix, default in IN_DEFAULT.items()
            for n in range(asked or SEEDS)
        ]
        if asked:
            cases = [pytest.param(*case.values) for case in cases]
        metafunc.parametrize(("mix", "seed"), cases)


@pytest.fixture(scope="session")
def pool() -> Iterator[ProcessPoolExecutor]:
    """As many processes as there are cores. What is submitted first is played first."""
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as workers:
        yield workers
        workers.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def sound(pool: ProcessPoolExecutor) -> Sound:
    """The run of the unmutated broker at a seed of a mix: played once, for all who compare with
    it."""
    from urteil.suites.simulation.scenario import simulate

    return functools.cache(lambda seed, mix: pool.submit(simulate, seed, mix=mix))


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest, sound: Sound) -> dict[tuple[str, int], Future[Run]]:
    """Every seed of a mix that a test asked for, under way."""
    asked = [
        (item.callspec.params["mix"], item.callspec.params["seed"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and "runs" in item.fixturenames
    ]
    return {(mix, seed): sound(seed, mix) for mix, seed in asked}


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Any:
    """Count a run for the summary."""
    return request.config.stash.setdefault(RUNS, []).append


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    runs = config.stash.get(RUNS, [])
    if not runs:
        return
    virtual_s = sum(run.virtual_s for run in runs)
    real_s = sum(run.real_s for run in runs)
    sends = sum(sum(run.outcomes.values()) for run in runs)
    faults = sum(len(run.faults) for run in runs)
    terminalreporter.write_line(
        f"SIMULATION {len(runs)} seeds, {sends} sends, {faults} faults: {virtual_s:.0f} virtual "
        f"seconds in {real_s:.0f} s of one core, {virtual_s / real_s:.0f} a second"
    )
