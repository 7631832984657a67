"""`urteil sensitivity`: randomly drawn bugs, and the share of them that the lab finds."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

from urteil.cli.campaign import campaign_folder, campaign_into_option, campaign_out_option
from urteil.cli.options import SEED, budget_option, engine_option, json_option

if TYPE_CHECKING:
    from urteil.harness.hunt.coverage import CoverageTable
    from urteil.harness.hunt.job import Job, Row
    from urteil.harness.hunt.sensitivity import Sensitivity, Trial
    from urteil.suites.drawn_bugs.bug import DrawnBug


@click.command(short_help="Draw bugs at random and show which of them are found.")
@click.option("--bugs", type=click.IntRange(1, 100_000), default=40, show_default=True,
              help="Number of bugs to draw.")  # fmt: skip
@click.option("--seed", type=SEED, default=1, show_default=True,
              help="Seed of the drawing.")  # fmt: skip
@click.option("--room", "rooms", multiple=True,
              help="Only this folder of broker/; repeatable.")  # fmt: skip
@click.option("--simulated-seeds", type=click.IntRange(1, 10_000), default=3, show_default=True,
              help="Seeds of the simulation for each bug.")  # fmt: skip
@click.option("--scenarios", type=click.IntRange(0, 100), default=3, show_default=True,
              help="Scenarios for each bug that survives the simulation.")  # fmt: skip
@budget_option("Begin no bug after this time.")
@engine_option()
@campaign_into_option
@campaign_out_option
@json_option("Print sensitivity.json instead of the table.")
def sensitivity(
    bugs: int,
    seed: int,
    rooms: Sequence[str],
    simulated_seeds: int,
    scenarios: int,
    budget: float | None,
    engine: str,
    into: Path | None,
    out: Path,
    as_json: bool,
) -> None:
    """Draw bugs of our broker by a seed and play them, first in the simulation.

    What survives there is played in the scenarios that execute its line, as coverage.db in --out
    knows them (`urteil run SCENARIO --coverage`). Bugs that change nothing are entered in
    suites/drawn_bugs/equivalent.toml. The campaign writes sensitivity.md and sensitivity.json, and
    continues where it was with --into. Exit code: 0.
    """
    from urteil.harness.hunt.ledger import Lines
    from urteil.harness.hunt.sensitivity import Trial, sensitivity_of

    chosen = _rooms(rooms)
    reasons = _reasons()
    folder = campaign_folder(into, out, "sensitivity")
    ledger = Lines(folder / "ledger.jsonl", Trial)
    table = _coverage_of_seeds(out, simulated_seeds)
    began, played = time.monotonic(), {trial.name for trial in ledger.rows}
    play = _player(folder, engine)
    for bug in itertools.islice(_drawing().draw(seed, chosen), bugs):
        if bug.name in played:
            continue
        if budget is not None and time.monotonic() - began > 60 * budget:
            break
        trial = _try(bug, folder, table, range(1, simulated_seeds + 1), scenarios, play)
        ledger.add(trial)
        _print_trial(trial)
        _write(folder, sensitivity_of(seed, ledger.rows, reasons))
    results = sensitivity_of(seed, ledger.rows, reasons)
    _write(folder, results)
    kind = "sensitivity.json" if as_json else "sensitivity.md"
    click.echo((folder / kind).read_text(), nl=False)
    click.echo(str(folder), err=True)


def _rooms(names: Sequence[str]) -> tuple[str, ...]:
    rooms: tuple[str, ...] = _drawing().ROOMS
    for name in names:
        if name not in rooms:
            raise click.UsageError(f"--room {name}: known are {', '.join(rooms)}")
    return tuple(names) or rooms


def _drawing() -> ModuleType:
    """The module that draws. Raises UsageError without cosmic-ray."""
    try:
        from urteil.suites.drawn_bugs import drawing
    except ModuleNotFoundError as error:
        raise click.UsageError(
            f"drawing needs {error.name}: pip install cosmic-ray (make setup in a checkout)"
        ) from None
    return drawing


def _reasons() -> dict[str, str]:
    from urteil.harness.hunt.sensitivity import load_equivalent
    from urteil.suites import drawn_bugs

    try:
        return load_equivalent(Path(drawn_bugs.__path__[0]) / "equivalent.toml")
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _coverage_of_seeds(out: Path, seeds: int) -> CoverageTable:
    """The coverage table with the lines of the seeds, which pass without a bug."""
    from urteil.harness.hunt.coverage import SIMULATION, CoverageTable
    from urteil.harness.hunt.sensitivity import SEED_LIMIT_S
    from urteil.harness.hunt.simulation import NoSimulation, simulate
    from urteil.suites.coverage.collection import collect

    table = CoverageTable(out / "coverage.db")
    with tempfile.TemporaryDirectory(prefix="urteil-lines-") as folder:
        try:
            played = simulate(range(1, seeds + 1), limit_s=SEED_LIMIT_S * seeds, lines=Path(folder))
        except NoSimulation as error:
            raise click.UsageError(str(error)) from None
        failed = [run for run in played.runs if run.findings or run.errors]
        if failed or len(played.runs) < seeds:
            raise click.ClickException(
                "the simulation does not pass without a bug: "
                f"{failed[0] if failed else played.output}"
            )
        table.add(SIMULATION, collect(Path(folder)))
    return table


def _player(folder: Path, engine: str) -> Callable[[Job], Row]:
    from urteil.harness.hunt.run_process import play_run, prune

    def play(job: Job) -> Row:
        return prune(play_run(job, folder / "runs", engine=engine))

    return play


def _try(
    bug: DrawnBug,
    folder: Path,
    table: CoverageTable,
    seeds: range,
    most: int,
    play: Callable[[Job], Row],
) -> Trial:
    """Play a bug until something finds it."""
    from urteil.harness.hunt.coverage import SIMULATION
    from urteil.harness.hunt.sensitivity import (
        SURVIVED,
        choose_scenarios,
        new_trial,
        try_in_scenario,
        try_in_simulation,
    )

    path = folder / "bugs" / f"{bug.name}.json"
    path.parent.mkdir(exist_ok=True)
    bug.save(path)
    trial = new_trial(bug)
    by_line = table.scenarios_by_line(bug.file, bug.digest)
    if SIMULATION in by_line.get(bug.line, ()):
        trial = try_in_simulation(trial, path, seeds)
    for scenario in choose_scenarios(by_line, bug.line, most, without=SIMULATION):
        if trial.outcome != SURVIVED:
            break
        trial = try_in_scenario(trial, path, scenario, 1, play=play)
    return trial


def _print_trial(trial: Trial) -> None:
    ran = "" if trial.ran else ", its line never ran"
    by = f" by {trial.by}" if trial.by else ran
    click.echo(f"{trial.outcome:<10} {trial.name:<24} {trial.slip}: {trial.function}{by}", err=True)
    for error in trial.errors:
        click.echo(f"  {error}", err=True)


def _write(folder: Path, results: Sensitivity) -> None:
    from urteil.harness.hunt.sensitivity import text_of
    from urteil.harness.scenario import save

    save(folder / "sensitivity.json", results)
    (folder / "sensitivity.md").write_text(text_of(results))
