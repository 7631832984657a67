"""`urteil simulate`: seeds of the simulation, on this machine or on Spark."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from urteil.cli.options import json_option, master_option

if TYPE_CHECKING:
    from urteil.harness.hunt.simulation import SimulatedRun

MOST = 1_000_000


class Seeds(click.ParamType):  # type: ignore[type-arg]
    """A seed, or the first and the last one as `A..B`."""

    name = "A..B"

    def convert(self, value: Any, param: Any, ctx: Any) -> range:
        first, _, last = str(value).partition("..")
        try:
            seeds = range(int(first), int(last or first) + 1)
        except ValueError:
            self.fail(f"{value} is neither a seed nor two as 1..100", param, ctx)
        if not seeds or seeds[0] < 0 or len(seeds) > MOST:
            self.fail(f"{value} has to be ascending, from 0 on, and {MOST:,} seeds at most",
                      param, ctx)  # fmt: skip
        return seeds


@click.command(short_help="Play seeds of the simulation.")
@click.option("--seeds", type=Seeds(), required=True, help="A seed, or the first and the last one.")
@click.option("--mix", "mixes", multiple=True, metavar="NAME",
              help="Only this mix of clients; repeatable.  [default: every one]")  # fmt: skip
@click.option("--mutant", metavar="NAME", help="Play on brokers with this seeded bug.")
@click.option("--workers", type=click.IntRange(1, 1024), default=os.cpu_count() or 1,
              show_default="the number of processors", help="Processes at a time.")  # fmt: skip
@master_option("Play on the workers of this Spark master instead.")
@json_option("Print a row for each seed.")
def simulate(
    seeds: range,
    mixes: Sequence[str],
    mutant: str | None,
    workers: int,
    master: str | None,
    as_json: bool,
) -> int:
    """Play seeds of the simulation: three of our brokers, ZooKeeper and clients on virtual time.

    A seed is always the same run. The processes that play them may die: their seeds are played
    again. Exit code: 1 with a finding, else 0.
    """
    from urteil.harness.hunt.simulated_seeds import local_player, play_seeds, spark_player
    from urteil.harness.hunt.simulation import NoSimulation

    began = time.monotonic()
    runs: list[SimulatedRun] = []
    try:
        play = (
            local_player(workers, mixes, mutant)
            if master is None
            else spark_player(master, mixes, mutant)
        )
        for run in play_seeds(seeds, play):
            runs.append(run)
            if not as_json:
                _print_findings(run)
    except NoSimulation as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        rows = [_row(run) for run in sorted(runs, key=lambda run: run.seed)]
        click.echo(json.dumps(rows, indent=2))
    else:
        _print_sum(runs, time.monotonic() - began)
    return int(any(run.findings for run in runs))


def _row(run: SimulatedRun) -> dict[str, Any]:
    return {"seed": run.seed, "findings": run.findings, "seconds": run.seconds,
            "virtual_s": run.virtual_s}  # fmt: skip


def _print_findings(run: SimulatedRun) -> None:
    for guarantee, sentence in run.findings.items():
        lines = sentence.strip().splitlines()
        click.echo(f"seed {run.seed}: {guarantee}: {lines[-1] if lines else 'violated'}")


def _print_sum(runs: Sequence[SimulatedRun], clock_s: float) -> None:
    virtual_s, processor_s = sum(run.virtual_s for run in runs), sum(run.seconds for run in runs)
    failed = sum(bool(run.findings) for run in runs)
    speed = f", {virtual_s / processor_s:.0f} a second" if processor_s else ""
    click.echo(
        f"{len(runs)} seeds, {failed} with findings: {virtual_s:.0f} virtual seconds in "
        f"{processor_s:.0f} s of processors{speed}, {clock_s:.0f} s on the clock"
    )
