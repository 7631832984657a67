"""`urteil simulate`: seeds of the simulation, on this machine or on Spark."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from urteil.cli.exit_codes import EXIT_LAB_FAILURE
from urteil.cli.options import SEED, json_option, master_option

if TYPE_CHECKING:
    from urteil.harness.hunt.simulation import SimulatedRun

MOST = 1_000_000
Again = Callable[[int, str], str]
"""The command that plays a seed of a mix again."""


class Seeds(click.ParamType):  # type: ignore[type-arg]
    """A seed, or the first and the last one as `A..B`."""

    name = "A..B"

    def convert(self, value: Any, param: Any, ctx: Any) -> range:
        first, _, last = str(value).partition("..")
        try:
            seeds = range(int(first), int(last or first) + 1)
        except ValueError:
            self.fail(f"{value} is neither a seed nor two as 1..100", param, ctx)
        for seed in (seeds.start, seeds.stop - 1):
            SEED.convert(seed, param, ctx)
        if not 0 < seeds.stop - seeds.start <= MOST:
            self.fail(f"{value} has to be ascending, from 0 on, and {MOST:,} seeds at most",
                      param, ctx)  # fmt: skip
        return seeds


@click.command(short_help="Play seeds of the simulation.")
@click.option("--seeds", type=Seeds(), help="A seed, or the first and the last one.")
@click.option("--mix", "mixes", multiple=True, metavar="NAME",
              help="Only this mix of clients; repeatable.  [default: every one]")  # fmt: skip
@click.option("--mutant", metavar="NAME", help="Play on brokers with this seeded bug.")
@click.option("--shrink", "shrink_to", type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE", help="Shrink the finding of one seed and one mix, and write the "
              "smallest run to this file.")  # fmt: skip
@click.option("--guarantee", metavar="NAME", help="With --shrink: the finding to shrink.")
@click.option("--schedule", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              metavar="FILE", help="Play a run that --shrink has written.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 1024), default=os.cpu_count() or 1,
              show_default="the number of processors", help="Processes at a time.")  # fmt: skip
@master_option("Play on the workers of this Spark master instead.")
@json_option("Print a row for each seed.")
def simulate(
    seeds: range | None,
    mixes: Sequence[str],
    mutant: str | None,
    shrink_to: Path | None,
    guarantee: str | None,
    schedule: Path | None,
    workers: int,
    master: str | None,
    as_json: bool,
) -> int:
    """Play seeds of the simulation: three of our brokers, ZooKeeper and clients on virtual time.

    A seed is always the same run. The processes that play them may die: their seeds are played
    again. A check that fails is an error of the lab, and no finding. Exit code: 1 with a finding,
    else 255 with an error of the lab, else 0.
    """
    from urteil.harness.hunt.simulation import NoSimulation

    if guarantee is not None and shrink_to is None:
        raise click.UsageError("--guarantee needs --shrink FILE")
    try:
        if schedule is not None:
            if seeds or mixes or mutant or shrink_to or master:
                raise click.UsageError("--schedule names a complete run: leave the others out")
            return _repeat(schedule, as_json=as_json)
        if seeds is None:
            raise click.UsageError("Missing option '--seeds' (or '--schedule')")
        if shrink_to is not None:
            return _shrink(seeds, mixes, mutant, shrink_to, guarantee, as_json=as_json)
        return _play(seeds, mixes, mutant, workers, master, as_json=as_json)
    except NoSimulation as error:
        raise click.UsageError(str(error)) from None


def _repeat(schedule: Path, *, as_json: bool) -> int:
    from urteil.harness.hunt.simulated_seeds import LIMIT_S
    from urteil.harness.hunt.simulation import repeat_schedule

    played = repeat_schedule(schedule, limit_s=LIMIT_S)
    if not played.runs:
        raise click.ClickException(f"the run did not end: {played.output}")

    def again(*_: object) -> str:
        return f"urteil simulate --schedule {schedule}"

    for run in () if as_json else played.runs:
        _print_run(run, again)
    return _report(played.runs, played.seconds, again, as_json=as_json)


def _shrink(
    seeds: range,
    mixes: Sequence[str],
    mutant: str | None,
    file: Path,
    guarantee: str | None,
    *,
    as_json: bool,
) -> int:
    """Exit code 1: there is a finding."""
    from urteil.harness.hunt.simulated_seeds import LIMIT_S
    from urteil.harness.hunt.simulation import shrink_seed

    if len(seeds) != 1 or len(mixes) != 1:
        raise click.UsageError("--shrink needs one seed and one --mix")
    shrunk = shrink_seed(
        seeds[0], file, limit_s=LIMIT_S, mix=mixes[0], guarantee=guarantee, mutant=mutant
    )
    if as_json:
        click.echo(msgspec.json.encode(shrunk).decode())
        return 1
    click.echo(
        f"{shrunk.guarantee}: {len(shrunk.faults)} of {shrunk.faults_before} faults, "
        f"{shrunk.partitions} partitions, {shrunk.faults_s:.0f} s, without "
        f"{', '.join(shrunk.without) or 'no client'}; {shrunk.tries} runs in "
        f"{shrunk.seconds:.0f} s of a processor"
    )
    for fault in shrunk.faults:
        click.echo(f"  {fault}")
    click.echo(f"  again: urteil simulate --schedule {file}")
    return 1


def _play(
    seeds: range,
    mixes: Sequence[str],
    mutant: str | None,
    workers: int,
    master: str | None,
    *,
    as_json: bool,
) -> int:
    from urteil.harness.hunt.simulated_seeds import local_player, play_seeds, spark_player

    def again(seed: int, mix: str) -> str:
        bug = "" if mutant is None else f" --mutant {mutant}"
        return f"urteil simulate --seeds {seed} --mix {mix}{bug}"

    began = time.monotonic()
    runs: list[SimulatedRun] = []
    play = (
        local_player(workers, mixes, mutant)
        if master is None
        else spark_player(master, mixes, mutant)
    )
    for run in play_seeds(seeds, play):
        runs.append(run)
        if not as_json:
            _print_run(run, again)
    return _report(runs, time.monotonic() - began, again, as_json=as_json)


def _report(runs: Sequence[SimulatedRun], clock_s: float, again: Again, *, as_json: bool) -> int:
    """Print the sum, or the rows of all runs."""
    if as_json:
        rows = [_row(run, again) for run in sorted(runs, key=lambda run: run.seed)]
        click.echo(json.dumps(rows, indent=2))
    else:
        _print_sum(runs, clock_s)
    if any(run.findings for run in runs):
        return 1
    return EXIT_LAB_FAILURE if any(run.errors for run in runs) else 0


def _row(run: SimulatedRun, again: Again) -> dict[str, Any]:
    errors = [
        {"mix": error.mix, "check": error.check, "error": error.error,
         "again": again(run.seed, error.mix)}
        for error in run.errors
    ]  # fmt: skip
    return {"seed": run.seed, "findings": run.findings, "errors": errors, "seconds": run.seconds,
            "virtual_s": run.virtual_s}  # fmt: skip


def _print_run(run: SimulatedRun, again: Again) -> None:
    """Findings, and errors of the lab."""
    for guarantee, sentence in run.findings.items():
        lines = sentence.strip().splitlines()
        click.echo(f"seed {run.seed}: {guarantee}: {lines[-1] if lines else 'violated'}")
    for error in run.errors:
        click.echo(f"seed {run.seed}: {error}\n  again: {again(run.seed, error.mix)}")


def _print_sum(runs: Sequence[SimulatedRun], clock_s: float) -> None:
    virtual_s, processor_s = sum(run.virtual_s for run in runs), sum(run.seconds for run in runs)
    failed = sum(bool(run.findings) for run in runs)
    unjudged = sum(bool(run.errors) for run in runs)
    errors = f", {unjudged} with errors of the lab" if unjudged else ""
    speed = f", {virtual_s / processor_s:.0f} a second" if processor_s else ""
    click.echo(
        f"{len(runs)} seeds, {failed} with findings{errors}: {virtual_s:.0f} virtual seconds in "
        f"{processor_s:.0f} s of processors{speed}, {clock_s:.0f} s on the clock"
    )
