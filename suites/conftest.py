"""The suites play scenarios of the catalogue and assert their verdicts.

The options `--urteil-target`, `--urteil-runtime`, `--urteil-hosts`, `--urteil-seed`,
`--urteil-engine` and `--urteil-out` belong to the plugin. `--urteil-nightly` plays more seeds, and
draws the first one unless it is given.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from urteil.harness.run.runner import run_scenario
from urteil.harness.scenario import Scenario
from urteil.harness.scenarios import SCENARIOS, SUITES
from urteil.harness.verify.result import Result, Verdict
from urteil.suites.mutants import MUTANTS
from urteil.suites.verdicts import explanation

if TYPE_CHECKING:
    from urteil.harness.runtimes.containers.engine import Engine

Play = Callable[..., Result]
GIVEN = ("seed", "target", "runtime", "hosts")
"""Fields of a scenario that options of the plugin change."""
REPEATS = 3
SEEDS = (1, 2, 3, 4, 5)


class UnknownVerdict(Exception):
    """The run supports no statement about the cluster: an error in pytest, not a failure."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--urteil-nightly", action="store_true", help="the long suites too")


def pytest_configure(config: pytest.Config) -> None:
    given = any(word.startswith("--urteil-seed") for word in config.invocation_params.args)
    if config.getoption("--urteil-nightly") and not given:
        config.option.urteil_seed = secrets.randbelow(1_000_000)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Generate a test for each scenario of the suite, which its folder names."""
    if "results" in metafunc.fixturenames:
        suite = metafunc.definition.path.parent.name
        metafunc.parametrize("results", SUITES[suite], indirect=True)


def pytest_report_header(config: pytest.Config) -> str:
    return f"urteil: seed {config.getoption('--urteil-seed')}"


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The running container engine, else one that the lab starts for the session."""
    from urteil.harness.runtimes.containers.own_engine import running_engine

    with running_engine(print) as running:
        yield running


@pytest.fixture
def play(request: pytest.FixtureRequest) -> Play:
    """`play(name, **changes)`: play a scenario, its fields changed, and return its result."""
    option = request.config.getoption

    def run(name: str, **changes: object) -> Result:
        options = {name: option(f"--urteil-{name}") for name in GIVEN}
        given = {name: value for name, value in options.items() if value is not None}
        if given["target"] == Scenario(name="").target:
            del given["target"]  # the plugin's default: a scenario may have another target
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
def results(request: pytest.FixtureRequest, play: Play) -> list[Result]:
    """The result of the scenario that is the parameter.

    One with anomalies in `must_find` is repeated under seeds 1 to REPEATS until they were found.
    An UNKNOWN verdict raises UnknownVerdict in the setup, so that pytest reports an error.
    """
    name = request.param
    if not SCENARIOS[name].must_find:
        return [require_verdict(play(name))]
    results: list[Result] = []
    for seed in range(1, REPEATS + 1):
        results.append(require_verdict(play(name, seed=seed)))
        if all(results[-1].must_find.values()):
            break
    return results


@pytest.fixture
def mutant_results(request: pytest.FixtureRequest, play: Play) -> list[Result]:
    """Results of the named mutant in its scenario: one seed, five with `--urteil-nightly`."""
    mutant = MUTANTS[request.param]
    seeds = SEEDS if request.config.getoption("--urteil-nightly") else SEEDS[:1]
    return [
        require_verdict(play(mutant.scenario, seed=seed, mutant=mutant.name, target="urteil"))
        for seed in seeds
    ]


def require_verdict(result: Result) -> Result:
    """The result; raises UnknownVerdict for UNKNOWN."""
    if result.verdict is Verdict.UNKNOWN:
        raise UnknownVerdict(explanation(result))
    return result
