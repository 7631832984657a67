"""`urteil mutants` and `urteil night`: many runs, a row each, a table that survives a kill."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from urteil.cli.names import known
from urteil.cli.run import ENGINES, EXIT_CODES, Number

if TYPE_CHECKING:
    from urteil.harness.campaign.history import Seen
    from urteil.harness.campaign.job import Row
    from urteil.harness.campaign.matrix import Matrix, Meant

_out = click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("runs"),
    help="Where the folder goes.  [default: runs]",
)  # fmt: skip
_suites = click.option("--suite", "suites", multiple=True, help="Scenarios of this suite alone.")
_engine = click.option("--engine", type=ENGINES, default="duckdb", show_default=True)
_into = click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path),
    help="This very folder: what it holds is not played again.",
)  # fmt: skip


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--seeds", type=click.IntRange(1, 10_000), default=1, show_default=True)
@click.option("--first-seed", type=click.IntRange(0), default=1, show_default=True)
@_suites
@click.option("--target", default="urteil", show_default=True, help="Mutants are of our broker.")
@click.option(
    "--budget",
    type=Number(0, 100_000),
    metavar="MINUTES",
    help="Begin no run after so long; the same command with --into goes on.",
)
@_engine
@_into
@_out
@click.option("--json", "as_json", is_flag=True, help="Print matrix.json, and nothing else.")
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
    chosen = _meant(names, suites)
    folder = _folder(into, out, "mutants")
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
        _tell(row)
        _write_matrix(folder, matrix_of(chosen, ledger.rows))
    matrix = matrix_of(chosen, ledger.rows)
    _write_matrix(folder, matrix)
    click.echo((folder / "matrix.json").read_text() if as_json else text_of(matrix), nl=False)
    click.echo(f"{matrix.verdict}  {folder}", err=True)
    return EXIT_CODES[matrix.verdict]


@click.command()
@click.option("--hours", type=Number(0, 10_000), default=8.0, show_default=True)
@click.option("--targets", default="urteil,kafka", show_default=True, help="By commas.")
@_suites
@click.option("--scenario", "scenarios", multiple=True, help="This scenario alone.")
@click.option("--mutants/--no-mutants", "with_mutants", default=False, help="Every mutant too.")
@click.option("--first-seed", type=click.IntRange(0), help="[default: drawn anew]")
@click.option("--budget-gb", type=Number(0), help="Disk that kept runs may take; failures go last.")
@click.option(
    "--history",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What all nights found, SQLite [default: history.db in --out]",
)
@click.option(
    "--summary",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append the table to this file in Markdown, as $GITHUB_STEP_SUMMARY takes it.",
)
@_engine
@_into
@_out
def night(
    hours: float,
    targets: str,
    suites: Sequence[str],
    scenarios: Sequence[str],
    with_mutants: bool,
    first_seed: int | None,
    budget_gb: float | None,
    history: Path | None,
    summary: Path | None,
    engine: str,
    into: Path | None,
    out: Path,
) -> int:
    """Play every scenario on every target under ever new seeds, for so many hours.

    Keeps every run that is not PASS; table.md and ledger.jsonl of the folder are true at any
    moment. Exit codes: those of the worst run, mutants left out.
    """
    from urteil.chaos.controls import LabFailure
    from urteil.harness.campaign import play
    from urteil.harness.campaign.history import History
    from urteil.harness.campaign.night import Night
    from urteil.harness.scenarios import SCENARIOS

    wanted, aimed = _scenarios(suites, scenarios), _targets(targets)
    folder = _folder(into, out, "night")
    hunt = Night(
        folder=folder,
        scenarios=[SCENARIOS[name] for name in wanted],
        targets=aimed,
        mutants=[one for one in _meant((), suites) if one.scenario in wanted]
        if with_mutants
        else [],
        first_seed=secrets.randbelow(1_000_000) if first_seed is None else first_seed,
        play=partial(play, engine=engine),
        told=_tell,
        history=History(history or out / "history.db"),
        recognised=_recognise,
        budget_bytes=float("inf") if budget_gb is None else budget_gb * 1e9,
    )
    click.echo(f"seeds from {hunt.first_seed} on; the table is {folder / 'table.md'}", err=True)
    try:
        hunt.hunt(time.monotonic() + 3600 * hours)
    except LabFailure as failure:
        raise click.ClickException(f"the night ended early: {failure}") from None
    table = (folder / "table.md").read_text().partition("## All runs")[0]
    click.echo(table, nl=False)
    if summary is not None:
        with summary.open("a", encoding="utf-8") as file:
            file.write(table)
    return EXIT_CODES[hunt.verdict()]


def _recognise(seen: Seen) -> None:
    click.echo(
        f"         seen before, {seen.times} times since {seen.first_at} ({seen.scenario}, seed "
        f"{seen.seed}): {seen.signature}",
        err=True,
    )


def _write_matrix(folder: Path, matrix: Matrix) -> None:
    from urteil.harness.campaign.matrix import text_of
    from urteil.harness.scenario import save
    from urteil.reports.matrix import write_matrix

    save(folder / "matrix.json", matrix)
    (folder / "matrix.md").write_text(text_of(matrix))
    write_matrix(folder, matrix)


def _folder(into: Path | None, out: Path, kind: str) -> Path:
    """The folder of a campaign; its links are followed now, since runs are told by their paths."""
    folder = into or out / f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def _scenarios(suites: Sequence[str], named: Sequence[str]) -> list[str]:
    """Scenarios that are named or belong to one of the suites; all when neither is given."""
    from urteil.harness.scenarios import SCENARIOS
    from urteil.suites import catalogue

    wanted = [known("scenario", name, SCENARIOS) for name in named]
    for suite in suites:
        if suite not in catalogue.suites():
            raise click.UsageError(f"no suite {suite!r}; known: {', '.join(catalogue.suites())}")
        wanted += catalogue.scenarios_of(suite, SCENARIOS)
    return list(dict.fromkeys(wanted)) if suites or named else list(SCENARIOS)


def _meant(names: Sequence[str], suites: Sequence[str]) -> list[Meant]:
    from urteil.harness.campaign.matrix import Meant
    from urteil.suites.mutants import MUTANTS

    chosen = [known("mutant", name, MUTANTS) for name in names] or list(MUTANTS)
    inside = set(_scenarios(suites, ()))
    return [
        Meant(name=name, scenario=MUTANTS[name].scenario, guarantee=MUTANTS[name].guarantee)
        for name in dict.fromkeys(chosen)
        if MUTANTS[name].scenario in inside or not suites
    ]


def _targets(text: str) -> list[str]:
    from urteil.harness.targets import parse_target

    names = [name.strip() for name in text.split(",")]
    for name in names:
        try:
            parse_target(name)
        except ValueError as error:
            raise click.UsageError(f"--targets {text}: {error}") from None
    return list(dict.fromkeys(names))


def _tell(row: Row) -> None:
    job = row.job
    what = f"{job.scenario}, seed {job.seed}, {job.mutant or job.target}"
    found = ", ".join(f"{name} {count}" for name, count in row.violated.items())
    why = found or (row.reasons[0] if row.verdict != "PASS" and row.reasons else "")
    click.echo(f"{row.verdict:<8} {row.seconds:>5.0f} s  {what:<60} {why}".rstrip(), err=True)
