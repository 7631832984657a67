"""`urteil night`: hours of runs on all scenarios; failures are rerun and shrunk."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from urteil.cli.bugs import chosen_bugs
from urteil.cli.campaign import (
    campaign_folder,
    campaign_into_option,
    campaign_out_option,
    chosen_mutants,
    chosen_scenarios,
    print_row,
    suites_option,
)
from urteil.cli.options import SEED, Number, engine_option, summary_option
from urteil.cli.run import EXIT_CODES, summarise
from urteil.cli.suggestions import require_known

if TYPE_CHECKING:
    from urteil.harness.hunt.archive import Archive, KnownSignature
    from urteil.harness.hunt.host_pool import HostPool
    from urteil.harness.hunt.investigation import Investigator
    from urteil.harness.hunt.job import Job, Row
    from urteil.harness.hunt.matrix import ExpectedCatch
    from urteil.harness.hunt.night import Night


TARGETS = "urteil,kafka"
HOSTS_PER_RUN = 3


@click.command(short_help="Play scenarios for hours; rerun and shrink failures.")
@click.option("--hours", type=Number(0, 10_000), default=8.0, show_default=True,
              help="Hours of runs.")  # fmt: skip
@click.option(
    "--targets", help="Targets, separated by commas.  [default: urteil,kafka, without --target]"
)
@click.option(
    "--target",
    "further_targets",
    multiple=True,
    help="A further target of `urteil run`: external:FILE.toml, mix:KIND,KIND,...",
)
@suites_option
@click.option("--scenario", "scenarios", multiple=True, help="Only this scenario; repeatable.")
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="NAME=W",
    help="Relative frequency of a scenario, suite, target, mutant or bug, of `mutants` or "
    "`bugs`; 0 is never. "
    "[default: 1, 4 for drawn schedules, 8 for drawn scenarios, 10 for --mutant]",
)
@click.option(
    "--mutants/--no-mutants", "with_mutants", default=False, help="Also play every mutant."
)
@click.option(
    "--bugs/--no-bugs",
    "with_bugs",
    default=False,
    help="Also play every published bug on the release that has it.",
)
@click.option(
    "--mutant",
    "mixed_in",
    multiple=True,
    metavar="NAME",
    help="Also play this mutant, and rerun and shrink it like a failure.",
)
@click.option(
    "--reruns",
    type=click.IntRange(0, 1000),
    default=10,
    show_default=True,
    help="Number of reruns of a failing seed.",
)
@click.option(
    "--shrink-minutes",
    type=Number(0, 100_000),
    default=30.0,
    show_default=True,
    help="Time limit for shrinking one failure; 0 disables it.",
)
@click.option(
    "--first-seed",
    type=SEED,
    help="Seed of the first run; the others follow.  [default: random]",
)
@click.option(
    "--budget-gb", type=Number(0), help="Disk space for kept runs; failures are removed last."
)
@click.option(
    "--history",
    type=click.Path(dir_okay=False, path_type=Path),
    help="SQLite file with the failures of all nights.  [default: history.db in --out]",
)
@click.option(
    "--hosts",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Play with --runtime ssh on these hosts, each group of free ones a run "
    "(docs/guide/hosts.md).",
)
@click.option(
    "--hosts-per-run",
    type=click.IntRange(1, 99),
    help="Number of hosts in a group.  [default: 3, or all if there are fewer]",
)
@summary_option("the table")
@engine_option()
@campaign_into_option
@campaign_out_option
def night(hours: float, summary: Path | None, **options: Any) -> int:
    """Play scenarios on every target with new seeds for the given hours.

    The next run is the most overdue one, by weight and by the time since it was last played. A
    failing seed is rerun and shrunk, unless an earlier night has examined its signature. Runs
    that are not PASS are kept. table.md and ledger.jsonl in the folder are always up to date. The
    exit code is that of the worst run without mutants, and 2 if a --mutant was not caught.
    """
    from urteil.chaos.observations import LabFailure

    hunt = _night(**options)
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
    further_targets: Sequence[str],
    suites: Sequence[str],
    scenarios: Sequence[str],
    weights: Sequence[str],
    with_mutants: bool,
    with_bugs: bool,
    mixed_in: Sequence[str],
    history: Path | None,
    into: Path | None,
    out: Path,
    hosts: Path | None,
    hosts_per_run: int | None,
    **options: Any,
) -> Night:
    """The night that the options describe. Raises UsageError for unknown names."""
    from urteil.harness.hunt.night import Night
    from urteil.harness.hunt.run_process import end_runs
    from urteil.harness.scenarios import SCENARIOS

    names, target_names = chosen_scenarios(suites, scenarios), _targets(targets, further_targets)
    if mixed_in and "urteil" not in target_names:
        raise click.UsageError(
            f"mutants change our own broker, not --targets {','.join(target_names)}"
        )
    mutants = _mutants(names, suites, mixed_in, all_of_suites=with_mutants)
    bugs = chosen_bugs(()) if with_bugs else []
    rest = [*(mutant.name for mutant in mutants), *(bug.name for bug in bugs)]
    weights_by_name = _weights(weights, target_names, rest)
    folder = campaign_folder(into, out, "night")
    pool = _host_pool(hosts, hosts_per_run, folder / "hosts")
    play = _player(pool, options["engine"])
    seed, budget_gb = options["first_seed"], options["budget_gb"]
    return Night(
        folder=folder,
        scenarios=[SCENARIOS[name] for name in names],
        targets=target_names,
        mutants=mutants,
        bugs=bugs,
        first_seed=secrets.randbelow(1_000_000) if seed is None else seed,
        play=play,
        at_once=pool.groups if pool else 1,
        end_runs=end_runs,
        runtime="ssh" if pool else "process",
        report=print_row,
        weights=weights_by_name,
        mixed_in=frozenset(mixed_in),
        history=_history(history or out / "history.db"),
        inspector=_inspector(folder / "failures", play, **options),
        on_known_signature=_recognise,
        budget_bytes=float("inf") if budget_gb is None else budget_gb * 1e9,
    )


def _history(path: Path) -> Archive:
    from urteil.harness.hunt.archive import Archive

    try:
        return Archive(path)
    except sqlite3.DatabaseError as error:
        raise click.UsageError(f"--history {path}: {error}; name another file") from None


def _host_pool(inventory: Path | None, size: int | None, folder: Path) -> HostPool | None:
    """The hosts of the night, if any. Raises UsageError for a bad inventory and group size."""
    from urteil.harness.hunt.host_pool import HostPool
    from urteil.harness.runtimes.hosts.inventory import load_hosts

    if inventory is None:
        if size is not None:
            raise click.UsageError("--hosts-per-run is a part of --hosts hosts.toml: add that")
        return None
    try:
        hosts = load_hosts(inventory)
        size = size or min(HOSTS_PER_RUN, len(hosts))
        return HostPool(hosts, size, folder.resolve(), report=_print_indented)
    except ValueError as error:
        raise click.UsageError(f"--hosts {inventory}: {error}") from None


def _player(pool: HostPool | None, engine: str) -> Callable[[Job, Path], Row]:
    from urteil.harness.hunt.run_process import play_on_hosts, play_run

    if pool is None:
        return partial(play_run, engine=engine)
    return partial(play_on_hosts, pool=pool, engine=engine)


def _inspector(
    folder: Path,
    play: Callable[[Job, Path], Row],
    *,
    reruns: int,
    shrink_minutes: float,
    engine: str,
    **_rest: Any,
) -> Investigator | None:
    from urteil.harness.hunt.investigation import Investigator
    from urteil.harness.hunt.run_process import shrink

    if not reruns and not shrink_minutes:
        return None
    return Investigator(
        folder=folder,
        play=play,
        shrink=partial(shrink, engine=engine),
        reruns=reruns,
        shrink_s=60 * shrink_minutes,
        log=_print_indented,
    )


def _mutants(
    scenarios: Sequence[str], suites: Sequence[str], mixed_in: Sequence[str], *, all_of_suites: bool
) -> list[ExpectedCatch]:
    suite_mutants = (
        [
            chosen_mutant
            for chosen_mutant in chosen_mutants((), suites)
            if chosen_mutant.scenario in scenarios
        ]
        if all_of_suites
        else []
    )
    mixed = chosen_mutants(mixed_in, ()) if mixed_in else []
    return list({mutant.name: mutant for mutant in [*suite_mutants, *mixed]}.values())


def _weights(texts: Sequence[str], targets: Sequence[str], rest: Sequence[str]) -> dict[str, float]:
    from urteil.harness.hunt.run_choice import BUGS, MUTANTS
    from urteil.harness.scenarios import SCENARIOS, SUITES

    weights: dict[str, float] = {}
    for text in texts:
        name, _, number = text.partition("=")
        weight = _weight(text, number)
        if name in SUITES and name not in SCENARIOS:
            weighted_names = [*SUITES[name]]
        else:
            names = [*SCENARIOS, *targets, *rest, MUTANTS, BUGS, *SUITES]
            weighted_names = [require_known("scenario", name, names)]
        for weighted_name in weighted_names:
            weights[weighted_name] = weights.get(weighted_name, 1.0) * weight
    return weights


def _weight(text: str, number: str) -> float:
    try:
        weight = float(number)
    except ValueError:
        weight = -1.0
    if not 0 <= weight < float("inf"):
        raise click.UsageError(f"--weight {text}: write NAME=W, where W is a number from 0 on")
    return weight


def _targets(text: str | None, further: Sequence[str]) -> list[str]:
    names_text = text or ("" if further else TARGETS)
    if "mix:" in names_text:
        raise click.UsageError(f"--targets {text}: a mix has commas of its own: use --target")
    names = [name.strip() for name in names_text.split(",") if names_text] + list(further)
    for name in names:
        try:
            _must_be_target(name)
        except ValueError as error:
            raise click.UsageError(f"--target {name}: {error}") from None
    return list(dict.fromkeys(names))


def _must_be_target(name: str) -> None:
    """Raise ValueError for a target that `urteil run` does not accept."""
    from urteil.harness.targets import parse_target
    from urteil.harness.targets.external import PREFIX, load_external

    if name.startswith(PREFIX):
        load_external(Path(name.removeprefix(PREFIX)))
    else:
        parse_target(name)


def _print_indented(line: str) -> None:
    click.echo(f"         {line}", err=True)


def _recognise(known: KnownSignature) -> None:
    from urteil.harness.verify.plurals import times

    investigation = ""
    if known.failure is not None:
        investigation = f"; again {known.failure.rate}; smallest: {known.failure.shortest}"
    _print_indented(
        f"seen before, {times(known.times)} since {known.first_at} ({known.scenario}, seed "
        f"{known.seed}): {known.signature}{investigation}"
    )
