"""`urteil night`: hours of runs that choose themselves, and what came of those that failed."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from urteil.cli.campaign import (
    campaign_folder,
    campaign_into_option,
    campaign_out_option,
    chosen_scenarios,
    meant_of,
    suites_option,
    tell_row,
)
from urteil.cli.names import known
from urteil.cli.options import Number, engine_option, summary_option
from urteil.cli.run import EXIT_CODES, summarise

if TYPE_CHECKING:
    from urteil.harness.campaign.history import History, Seen
    from urteil.harness.campaign.inspector import Inspector
    from urteil.harness.campaign.matrix import Meant
    from urteil.harness.campaign.night import Night


TARGETS = "urteil,kafka"


@click.command(short_help="Hours of runs that choose themselves.")
@click.option("--hours", type=Number(0, 10_000), default=8.0, show_default=True)
@click.option("--targets", help="By commas.  [default: urteil,kafka, where no --target is given]")
@click.option(
    "--target",
    "others",
    multiple=True,
    help="One more, as `urteil run` takes it: external:FILE.toml, mix:KIND,KIND,...",
)
@suites_option
@click.option("--scenario", "scenarios", multiple=True, help="This scenario alone.")
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="NAME=W",
    help="How often beside others: a scenario, suite, target, mutant or `mutants`; 0 is never. "
    "[default: 1, 4 where the seed draws the schedule, 5 for --mutant]",
)
@click.option("--mutants/--no-mutants", "with_mutants", default=False, help="Every mutant too.")
@click.option(
    "--mutant",
    "mixed_in",
    multiple=True,
    metavar="NAME",
    help="Mix this one in for proof: it is looked into as a failure is.",
)
@click.option(
    "--reruns",
    type=click.IntRange(0, 1000),
    default=10,
    show_default=True,
    help="Play a failing seed so many times more, for its rate.",
)
@click.option(
    "--shrink-minutes",
    type=Number(0, 100_000),
    default=30.0,
    show_default=True,
    help="Shrink a failure for so long; 0 is not at all.",
)
@click.option("--first-seed", type=click.IntRange(0), help="[default: drawn anew]")
@click.option("--budget-gb", type=Number(0), help="Disk that kept runs may take; failures go last.")
@click.option(
    "--history",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What all nights found, SQLite [default: history.db in --out]",
)
@summary_option("the table")
@engine_option()
@campaign_into_option
@campaign_out_option
def night(hours: float, summary: Path | None, **asked: Any) -> int:
    """Play scenarios on every target under ever new seeds, for so many hours.

    What is due most comes first: by its weight, and by how long ago it was played. A failing seed
    is played again for its rate and shrunk, unless its signature is known from an earlier night.
    Keeps every run that is not PASS; table.md and ledger.jsonl of the folder are true at any
    moment. Exit codes: those of the worst run, mutants left out; 2 also when a mutant that was
    mixed in was not caught.
    """
    from urteil.chaos.observations import LabFailure

    hunt = _night(**asked)
    click.echo(
        f"seeds from {hunt.first_seed} on; the table is {hunt.folder / 'table.md'}", err=True
    )
    try:
        hunt.hunt(time.monotonic() + 3600 * hours)
    except LabFailure as failure:
        raise click.ClickException(f"the night ended early: {failure}") from None
    table = (hunt.folder / "table.md").read_text().partition("## All runs")[0]
    click.echo(table, nl=False)
    if summary is not None:
        summarise(summary, table, f"cat {hunt.folder / 'table.md'}")
    return EXIT_CODES[hunt.verdict()]


def _night(
    *,
    targets: str | None,
    others: Sequence[str],
    suites: Sequence[str],
    scenarios: Sequence[str],
    weights: Sequence[str],
    with_mutants: bool,
    mixed_in: Sequence[str],
    history: Path | None,
    into: Path | None,
    out: Path,
    **asked: Any,
) -> Night:
    """UsageError for what is not known."""
    from urteil.harness.campaign.night import Night
    from urteil.harness.campaign.play import play
    from urteil.harness.scenarios import SCENARIOS

    wanted, aimed = chosen_scenarios(suites, scenarios), _targets(targets, others)
    if mixed_in and "urteil" not in aimed:
        raise click.UsageError(f"mutants change our own broker, not --targets {','.join(aimed)}")
    mutants = _mutants(wanted, suites, mixed_in, every=with_mutants)
    weighed = _weights(weights, aimed, [one.name for one in mutants])
    folder = campaign_folder(into, out, "night")
    seed, budget_gb = asked["first_seed"], asked["budget_gb"]
    return Night(
        folder=folder,
        scenarios=[SCENARIOS[name] for name in wanted],
        targets=aimed,
        mutants=mutants,
        first_seed=secrets.randbelow(1_000_000) if seed is None else seed,
        play=partial(play, engine=asked["engine"]),
        told=tell_row,
        weights=weighed,
        mixed_in=frozenset(mixed_in),
        history=_history(history or out / "history.db"),
        inspector=_inspector(folder / "failures", **asked),
        recognised=_recognise,
        budget_bytes=float("inf") if budget_gb is None else budget_gb * 1e9,
    )


def _history(path: Path) -> History:
    from urteil.harness.campaign.history import History

    try:
        return History(path)
    except sqlite3.DatabaseError as error:
        raise click.UsageError(f"--history {path}: {error}; name another file") from None


def _inspector(
    folder: Path, *, reruns: int, shrink_minutes: float, engine: str, **_rest: Any
) -> Inspector | None:
    from urteil.harness.campaign.inspector import Inspector
    from urteil.harness.campaign.play import play, shrink

    if not reruns and not shrink_minutes:
        return None
    return Inspector(
        folder=folder,
        play=partial(play, engine=engine),
        shrink=partial(shrink, engine=engine),
        reruns=reruns,
        shrink_s=60 * shrink_minutes,
        said=_say,
    )


def _mutants(
    wanted: Sequence[str], suites: Sequence[str], mixed_in: Sequence[str], *, every: bool
) -> list[Meant]:
    whole = [one for one in meant_of((), suites) if one.scenario in wanted] if every else []
    named = meant_of(mixed_in, ()) if mixed_in else []
    return list({one.name: one for one in [*whole, *named]}.values())


def _weights(
    asked: Sequence[str], targets: Sequence[str], mutants: Sequence[str]
) -> dict[str, float]:
    from urteil.harness.campaign.choice import MUTANTS
    from urteil.harness.scenarios import SCENARIOS
    from urteil.suites import catalogue

    weights: dict[str, float] = {}
    for text in asked:
        name, _, number = text.partition("=")
        weight = _weight(text, number)
        if name in catalogue.suites() and name not in SCENARIOS:
            named = catalogue.scenarios_of(name, SCENARIOS)
        else:
            names = [*SCENARIOS, *targets, *mutants, MUTANTS, *catalogue.suites()]
            named = [known("scenario", name, names)]
        for one in named:
            weights[one] = weights.get(one, 1.0) * weight
    return weights


def _weight(text: str, number: str) -> float:
    try:
        weight = float(number)
    except ValueError:
        weight = -1.0
    if not 0 <= weight < float("inf"):
        raise click.UsageError(f"--weight {text}: write NAME=W, W a number from 0 on")
    return weight


def _targets(text: str | None, others: Sequence[str]) -> list[str]:
    listed = text or ("" if others else TARGETS)
    if "mix:" in listed:
        raise click.UsageError(f"--targets {text}: a mix has commas of its own: use --target")
    names = [name.strip() for name in listed.split(",") if listed] + list(others)
    for name in names:
        try:
            _must_be_target(name)
        except ValueError as error:
            raise click.UsageError(f"--target {name}: {error}") from None
    return list(dict.fromkeys(names))


def _must_be_target(name: str) -> None:
    """ValueError for what `urteil run` does not take either."""
    from urteil.harness.targets import parse_target
    from urteil.harness.targets.external import PREFIX, load_external

    if name.startswith(PREFIX):
        load_external(Path(name.removeprefix(PREFIX)))
    else:
        parse_target(name)


def _say(line: str) -> None:
    click.echo(f"         {line}", err=True)


def _recognise(seen: Seen) -> None:
    from urteil.harness.verify.words import times

    known_of = ""
    if seen.failure is not None:
        known_of = f"; again {seen.failure.rate}; smallest: {seen.failure.shortest}"
    _say(
        f"seen before, {times(seen.times)} since {seen.first_at} ({seen.scenario}, seed "
        f"{seen.seed}): {seen.signature}{known_of}"
    )
