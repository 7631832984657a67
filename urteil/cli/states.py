"""`urteil states`: the rare states that the last runs reached, and those that none reached."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from urteil.cli import completion
from urteil.cli.options import SEED, json_option, out_option
from urteil.cli.run_lookup import readable_run
from urteil.cli.suggestions import require_known

if TYPE_CHECKING:
    from urteil.harness.hunt.state_summary import CountedRun


@click.command(short_help="Show which rare states the last runs reached.")
@click.argument("run_names", nargs=-1, metavar="[RUN]...", shell_complete=completion.runs)
@click.option(
    "--runs", "folders", multiple=True, metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with runs and campaigns; repeatable.  [default: --out]",
)  # fmt: skip
@click.option("--scenario", help="Only runs of this scenario.", shell_complete=completion.scenarios)
@click.option("--target", help="Only runs on this target, as `kafka` or `kafka:4.4.0`.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the newest N runs.")
@click.option(
    "--state",
    "state_names",
    multiple=True,
    metavar="NAME",
    help="Print the runs that reached this state (`urteil list states`); repeatable.",
)
@click.option(
    "--simulate",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Instead play N short runs of the simulation.",
)
@click.option(
    "--guided", is_flag=True, help="With --simulate: vary runs that reached something new."
)
@click.option("--seed", type=SEED, default=1, show_default=True,
              help="With --simulate: the seed of the runs.")  # fmt: skip
@json_option("Print for each state the runs that could reach it, those that did, and how often.")
@out_option()
def states(
    run_names: Sequence[str],
    folders: Sequence[Path],
    scenario: str | None,
    target: str | None,
    last: int | None,
    state_names: Sequence[str],
    simulate: int | None,
    guided: bool,
    seed: int,
    as_json: bool,
    out: Path,
) -> None:
    """Show how often each RUN (a folder, or `latest`) reached each rare state.

    Without RUN, all runs in --out, and those in the ledgers of its nights and campaigns.
    `urteil list states` explains the states. Runs of earlier versions are counted at first sight,
    and the counts stay in their folders as states.json.
    """
    _check_names(scenario, state_names)
    if guided and simulate is None:
        raise click.UsageError("--guided draws runs of the simulation: add --simulate N")
    if simulate is not None:
        if run_names or folders:
            raise click.UsageError("--simulate plays runs of its own: leave out RUN and --runs")
        found: Iterable[CountedRun] = _simulated_runs(simulate, seed, guided=guided)
    elif run_names:
        found = _named_runs(run_names, out)
    else:
        found = _below(folders or [out])
    runs = sorted(found, key=lambda run: run.at)
    runs = [run for run in runs if scenario in (None, run.scenario)]
    runs = [run for run in runs if target in (None, run.target)][-(last or 0) :]
    if not runs:
        raise click.UsageError(
            "there is no run to count: `urteil run SCENARIO` plays one, --runs FOLDER names a "
            "folder with others, and --scenario and --target may leave none"
        )
    if state_names:
        for name in state_names:
            _print_state(name, runs)
    elif as_json:
        click.echo(json.dumps(_as_json(runs), indent=2))
    else:
        _print_reach(runs)


def _check_names(scenario: str | None, state_names: Sequence[str]) -> None:
    from urteil.harness.scenarios import SCENARIOS
    from urteil.harness.verify.rare_states import STATES

    if scenario is not None:
        require_known("scenario", scenario, SCENARIOS)
    for name in state_names:
        require_known("state", name, STATES)


def _named_runs(names: Sequence[str], out: Path) -> list[CountedRun]:
    """The named runs. Raises UsageError for one that cannot be counted."""
    from urteil.harness.hunt.state_summary import read_run

    runs = []
    for name in names:
        folder = readable_run(name, out, "run.json")
        try:
            runs.append(read_run(folder))
        except ValueError as error:
            raise click.UsageError(f"{folder}: its states cannot be counted: {error}") from None
    return runs


def _below(folders: Sequence[Path]) -> Iterator[CountedRun]:
    """The runs below folders. Runs that cannot be counted are named on stderr."""
    from urteil.harness.hunt.state_summary import ledger_runs, read_run, run_folders

    for folder in folders:
        yield from ledger_runs(folder)
        for run in run_folders(folder):
            try:
                yield read_run(run)
            except ValueError as error:
                click.echo(f"{run}: its states cannot be counted: {error}", err=True)


def _simulated_runs(count: int, seed: int, *, guided: bool) -> Iterator[CountedRun]:
    """Runs of the simulation. Raises UsageError where it cannot be played."""
    from urteil.harness.hunt.guided_draws import draw_runs
    from urteil.harness.hunt.simulation import NoSimulation
    from urteil.harness.hunt.state_summary import CountedRun

    try:
        for number, run in enumerate(draw_runs(count, seed=seed, guided=guided)):
            yield CountedRun(name=f"run {number + 1}", at=f"{number:06}", scenario="simulation",
                             target="urteil", reached=run.reached)  # fmt: skip
    except NoSimulation as error:
        raise click.UsageError(f"--simulate: {error}") from None


def _print_state(name: str, runs: Sequence[CountedRun]) -> None:
    """The runs that reached a state, the newest first."""
    from urteil.harness.verify.plurals import times
    from urteil.harness.verify.rare_states import STATES

    click.echo(f"{name}: {STATES[name].about}")
    reached = [run for run in reversed(runs) if run.reached.get(name)]
    for run in reached:
        click.echo(f"  {run.name}  {run.scenario} on {run.target}, {times(run.reached[name])}")
    if not reached:
        click.echo("  reached by no run")


def _print_reach(runs: Sequence[CountedRun]) -> None:
    from urteil.harness.hunt.state_summary import (
        missed_lines,
        reach_line,
        reach_table,
        summarise_runs,
    )

    reach = summarise_runs(runs)
    click.echo(reach_table(reach))
    click.echo(f"{reach_line(reach, runs)}. Never reached:")
    for line in missed_lines(reach) or ["none"]:
        click.echo(f"  {line}")


def _as_json(runs: Sequence[CountedRun]) -> dict[str, object]:
    from urteil.harness.hunt.state_summary import summarise_runs

    return {
        name: {
            "counted": state.counted,
            "runs": state.runs,
            "times": state.times,
            "scenarios": {scenario: n for scenario, n in state.scenarios.items() if n},
        }
        for name, state in summarise_runs(runs).items()
    }
