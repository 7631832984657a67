"""The suites play scenarios of the catalogue and assert their verdicts.

`--urteil-target`, `--urteil-runtime`, `--urteil-seed`, `--urteil-engine` and `--urteil-out` are
the plugin's; `--urteil-nightly` adds what takes hours, under a seed drawn anew unless one is given.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from urteil.harness.runner.runner import run_scenario
from urteil.harness.scenarios import SCENARIOS
from urteil.harness.verify.result import Result, Verdict
from urteil.suites.mutants import MUTANTS
from urteil.suites.verdicts import told

if TYPE_CHECKING:
    from urteil.harness.containers.engine import Engine

Play = Callable[..., Result]
REPEATS = 3
SEEDS = (1, 2, 3, 4, 5)


class UnknownVerdict(Exception):
    """The run says nothing about the cluster. In pytest an error, never a failure or a skip."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--urteil-nightly", action="store_true", help="the long suites too")


def pytest_configure(config: pytest.Config) -> None:
    given = any(word.startswith("--urteil-seed") for word in config.invocation_params.args)
    if config.getoption("--urteil-nightly") and not given:
        config.option.urteil_seed = secrets.randbelow(1_000_000)


def pytest_report_header(config: pytest.Config) -> str:
    return f"urteil: seed {config.getoption('--urteil-seed')}"


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The container engine that runs; where none does, one of the lab's own for the session."""
    from urteil.harness.containers.own_engine import running_engine

    with running_engine(print) as found:
        yield found


@pytest.fixture
def play(request: pytest.FixtureRequest) -> Play:
    """`play(name, **changes)`: play a scenario, its fields changed, and return its result."""
    option = request.config.getoption

    def run(name: str, **changes: object) -> Result:
        asked = {name: option(f"--urteil-{name}") for name in ("seed", "target", "runtime")}
        given = {name: value for name, value in asked.items() if value is not None}
        chosen = given | changes
        scenario = msgspec.structs.replace(SCENARIOS[name], **chosen)
        if scenario.runtime == "docker":
            request.getfixturevalue("engine")
        _, result = run_scenario(
            scenario,
            out=Path(option("--urteil-out")),
            engine=option("--urteil-engine"),
            log=print,
        )
        return result

    return run


@pytest.fixture
def result(request: pytest.FixtureRequest, play: Play) -> Result:
    """The result of the scenario that the test names by indirect parametrization.

    An UNKNOWN verdict is raised here, in the setup, so that pytest and JUnit count an error.
    """
    return known(play(request.param))


@pytest.fixture
def repeats(request: pytest.FixtureRequest, play: Play) -> list[Result]:
    """Results of the named scenario under seeds 1, 2, ... until what it must find was found, or
    after REPEATS of them. UNKNOWN is an error, as in `result`."""
    results: list[Result] = []
    for seed in range(1, REPEATS + 1):
        results.append(known(play(request.param, seed=seed)))
        if all(results[-1].must_find.values()):
            break
    return results


@pytest.fixture
def mutated(request: pytest.FixtureRequest, play: Play) -> list[Result]:
    """Results of the named mutant in the scenario meant for it: one seed, five at night."""
    mutant = MUTANTS[request.param]
    seeds = SEEDS if request.config.getoption("--urteil-nightly") else SEEDS[:1]
    return [
        known(play(mutant.scenario, seed=seed, mutant=mutant.name, target="urteil"))
        for seed in seeds
    ]


def known(result: Result) -> Result:
    """The result, unless it says nothing about the cluster."""
    if result.verdict is Verdict.UNKNOWN:
        raise UnknownVerdict(told(result))
    return result
