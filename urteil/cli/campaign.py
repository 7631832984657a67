"""`urteil mutants`, and what it has in common with `urteil night`: many runs, a row each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from urteil.cli import completion
from urteil.cli.names import known
from urteil.cli.options import budget_option, engine_option, into_option, json_option, out_option
from urteil.cli.run import EXIT_CODES

if TYPE_CHECKING:
    from urteil.harness.campaign.job import Row
    from urteil.harness.campaign.matrix import Matrix, Meant

campaign_out_option = out_option("Where the folder goes.")
campaign_into_option = into_option("This very folder: what it holds is not played again.")
suites_option = click.option(
    "--suite", "suites", multiple=True, help="Scenarios of this suite alone."
)


@click.command(short_help="Which seeded bugs are caught, by what, how soon.")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.mutants)
@click.option("--seeds", type=click.IntRange(1, 10_000), default=1, show_default=True)
@click.option("--first-seed", type=click.IntRange(0), default=1, show_default=True)
@suites_option
@click.option("--target", default="urteil", show_default=True, help="Mutants are of our broker.")
@budget_option("Begin no run after so long; the same command with --into goes on.")
@engine_option()
@campaign_into_option
@campaign_out_option
@json_option("Print matrix.json, and nothing else.")
def mutants(
    names: Sequence[str],
    seeds: int,
    first_seed: int,
    suites: Sequence[str],
    target: str,
    budget: float | None,
    engine: str,
    into: Path | None,
    out: Path,
    as_json: bool,
) -> int:
    """Play every mutant (or those named) in its scenario and print who was caught by what.

    The same scenario and seed with the broker as it is must pass. Exit codes: 0 all caught, 1 one
    was not, 2 nothing can be said of one.
    """
    from urteil.harness.campaign import Ledger, play
    from urteil.harness.campaign.matrix import jobs_of, matrix_of, text_of
    from urteil.harness.campaign.play import prune

    if target != "urteil":
        raise click.UsageError(f"mutants change our own broker, not --target {target}")
    chosen = meant_of(names, suites)
    folder = campaign_folder(into, out, "mutants")
    ledger = Ledger(folder / "ledger.jsonl")
    began = time.monotonic()
    for job in jobs_of(chosen, range(first_seed, first_seed + seeds)):
        if ledger.find(job):
            continue
        if budget is not None and time.monotonic() - began > 60 * budget:
            break
        row = play(job, folder / "runs", engine=engine)
        wanted = {one.guarantee for one in chosen if one.name == job.mutant}
        expected = wanted & set(row.violated) if job.mutant else row.verdict == "PASS"
        ledger.add(prune(row) if expected else row)
        tell_row(row)
        _write_matrix(folder, matrix_of(chosen, ledger.rows))
    matrix = matrix_of(chosen, ledger.rows)
    _write_matrix(folder, matrix)
    click.echo((folder / "matrix.json").read_text() if as_json else text_of(matrix), nl=False)
    click.echo(f"{matrix.verdict}  {folder}", err=True)
    return EXIT_CODES[matrix.verdict]


def _write_matrix(folder: Path, matrix: Matrix) -> None:
    from urteil.harness.campaign.matrix import text_of
    from urteil.harness.scenario import save
    from urteil.reports.matrix import write_matrix

    save(folder / "matrix.json", matrix)
    (folder / "matrix.md").write_text(text_of(matrix))
    write_matrix(folder, matrix)


def campaign_folder(into: Path | None, out: Path, kind: str) -> Path:
    """The folder of a campaign; its links are followed now, since runs are told by their paths."""
    folder = into or out / f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def chosen_scenarios(suites: Sequence[str], named: Sequence[str]) -> list[str]:
    """Scenarios that are named or belong to one of the suites; all when neither is given."""
    from urteil.harness.scenarios import SCENARIOS
    from urteil.suites import catalogue

    wanted = [known("scenario", name, SCENARIOS) for name in named]
    for suite in suites:
        if suite not in catalogue.suites():
            raise click.UsageError(f"no suite {suite!r}; known: {', '.join(catalogue.suites())}")
        wanted += catalogue.scenarios_of(suite, SCENARIOS)
    return list(dict.fromkeys(wanted)) if suites or named else list(SCENARIOS)


def meant_of(names: Sequence[str], suites: Sequence[str]) -> list[Meant]:
    from urteil.harness.campaign.matrix import Meant
    from urteil.suites.mutants import MUTANTS

    chosen = [known("mutant", name, MUTANTS) for name in names] or list(MUTANTS)
    inside = set(chosen_scenarios(suites, ()))
    return [
        Meant(name=name, scenario=MUTANTS[name].scenario, guarantee=MUTANTS[name].guarantee)
        for name in dict.fromkeys(chosen)
        if MUTANTS[name].scenario in inside or not suites
    ]


def tell_row(row: Row) -> None:
    job = row.job
    what = f"{job.scenario}, seed {job.seed}, {job.mutant or job.target}"
    found = ", ".join(f"{name} {count}" for name, count in row.violated.items())
    why = found or (row.reasons[0] if row.verdict != "PASS" and row.reasons else "")
    click.echo(f"{row.verdict:<8} {row.seconds:>5.0f} s  {what:<60} {why}".rstrip(), err=True)
