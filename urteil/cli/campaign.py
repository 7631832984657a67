"""`urteil mutants`, and the options and output that it shares with `urteil night`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from urteil.chaos.similar_names import suggest
from urteil.cli import completion
from urteil.cli.options import (
    SEED,
    budget_option,
    engine_option,
    into_option,
    json_option,
    out_option,
)
from urteil.cli.run import EXIT_CODES
from urteil.cli.suggestions import require_known

if TYPE_CHECKING:
    from urteil.harness.hunt import Ledger
    from urteil.harness.hunt.job import Job, Row
    from urteil.harness.hunt.matrix import ExpectedCatch, Matrix

campaign_out_option = out_option("Parent folder of the campaign.")
campaign_into_option = into_option(
    "Continue the campaign in this folder; its runs are not repeated."
)
suites_option = click.option(
    "--suite", "suites", multiple=True, help="Only scenarios of this suite; repeatable."
)


@click.command(short_help="Play seeded bugs and show which checks catch them.")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.mutants)
@click.option("--seeds", type=click.IntRange(1, 10_000), default=1, show_default=True,
              help="Number of seeds for each mutant.")  # fmt: skip
@click.option("--first-seed", type=SEED, default=1, show_default=True,
              help="First seed; the others follow.")  # fmt: skip
@suites_option
@click.option(
    "--target",
    default="urteil",
    show_default=True,
    help="Only urteil: mutants change our own broker.",
)
@budget_option("Start no run after this time; --into continues later.")
@engine_option()
@campaign_into_option
@campaign_out_option
@json_option("Print only matrix.json.")
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
    """Play each named mutant (all by default) in its scenario, and print the matrix.

    A mutant is caught when its own guarantee is violated and the unchanged broker passes the same
    scenario and seed. Exit codes: 0 all are caught, 1 one is not, 2 one could not be judged.
    """
    from urteil.harness.hunt import Ledger
    from urteil.harness.hunt.matrix import matrix_of, plan_jobs, text_of
    from urteil.harness.hunt.run_process import play_runs, prune

    if target != "urteil":
        raise click.UsageError(f"mutants change our own broker, not --target {target}")
    chosen = chosen_mutants(names, suites)
    folder = campaign_folder(into, out, "mutants")
    ledger = Ledger(folder / "ledger.jsonl")
    jobs = due_jobs(plan_jobs(chosen, range(first_seed, first_seed + seeds)), ledger, budget)
    with closing(play_runs(jobs, folder / "runs", engine=engine)) as rows:
        for row in rows:
            ledger.add(prune(row) if _is_expected(row, chosen) else row)
            print_row(row)
            _write_matrix(folder, matrix_of(chosen, ledger.rows))
    matrix = matrix_of(chosen, ledger.rows)
    _write_matrix(folder, matrix)
    click.echo((folder / "matrix.json").read_text() if as_json else text_of(matrix), nl=False)
    click.echo(f"{matrix.verdict}  {folder}", err=True)
    return EXIT_CODES[matrix.verdict]


def _is_expected(row: Row, chosen: Sequence[ExpectedCatch]) -> bool:
    """Whether a mutant was caught by its guarantee, or the unchanged broker passed."""
    if row.job.mutant is None:
        return row.verdict == "PASS"
    return any(
        mutant.name == row.job.mutant and mutant.guarantee in row.violated for mutant in chosen
    )


def _write_matrix(folder: Path, matrix: Matrix) -> None:
    from urteil.harness.hunt.matrix import text_of
    from urteil.harness.scenario import save
    from urteil.reports.matrix import write_matrix

    save(folder / "matrix.json", matrix)
    (folder / "matrix.md").write_text(text_of(matrix))
    write_matrix(folder, matrix)


def due_jobs(jobs: Iterable[Job], ledger: Ledger, budget: float | None) -> Iterator[Job]:
    """The jobs without a row in the ledger, until `budget` minutes have passed."""
    began = time.monotonic()
    for job in jobs:
        if ledger.find(job):
            continue
        if budget is not None and time.monotonic() - began > 60 * budget:
            return
        yield job


def campaign_folder(into: Path | None, out: Path, kind: str) -> Path:
    """Create the folder of a campaign and return it without links: runs are named by their path."""
    folder = into or out / f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def chosen_scenarios(suites: Sequence[str], names_given: Sequence[str]) -> list[str]:
    """The named scenarios and those of the suites; all scenarios when neither is given."""
    from urteil.harness.scenarios import SCENARIOS, SUITES

    scenarios = [require_known("scenario", name, SCENARIOS) for name in names_given]
    for suite in suites:
        if suite not in SUITES:
            raise click.UsageError(f"no suite {suite!r}; {suggest(suite, SUITES)}")
        scenarios += SUITES[suite]
    return list(dict.fromkeys(scenarios)) if suites or names_given else list(SCENARIOS)


def chosen_mutants(names: Sequence[str], suites: Sequence[str]) -> list[ExpectedCatch]:
    from urteil.harness.hunt.matrix import ExpectedCatch
    from urteil.suites.mutants import MUTANTS

    chosen = [require_known("mutant", name, MUTANTS) for name in names] or list(MUTANTS)
    inside = set(chosen_scenarios(suites, ()))
    return [
        ExpectedCatch(name=name, scenario=MUTANTS[name].scenario, guarantee=MUTANTS[name].guarantee)
        for name in dict.fromkeys(chosen)
        if MUTANTS[name].scenario in inside or not suites
    ]


def print_row(row: Row) -> None:
    job = row.job
    run = f"{job.scenario}, seed {job.seed}, {job.mutant or job.target}"
    findings = ", ".join(f"{name} {count}" for name, count in row.violated.items())
    explanation = findings or (row.reasons[0] if row.verdict != "PASS" and row.reasons else "")
    click.echo(
        f"{row.verdict:<8} {row.seconds:>5.0f} s  {run:<60} {explanation}".rstrip(), err=True
    )
