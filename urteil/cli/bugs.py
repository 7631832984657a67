"""`urteil bugs`: published bugs on affected releases, and on the releases that fixed them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from urteil.cli import completion
from urteil.cli.campaign import (
    campaign_folder,
    campaign_into_option,
    campaign_out_option,
    due_jobs,
    print_row,
)
from urteil.cli.options import SEED, budget_option, engine_option, json_option
from urteil.cli.run import EXIT_CODES
from urteil.cli.suggestions import require_known

if TYPE_CHECKING:
    from urteil.harness.hunt.bug_table import BugTable
    from urteil.harness.known_bugs import KnownBug


@click.command(short_help="Find published bugs again in the releases that have them.")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.bugs)
@click.option("--tries", type=click.IntRange(1, 10_000), default=1, show_default=True,
              help="Number of seeds for each bug, on both releases.")  # fmt: skip
@click.option("--first-seed", type=SEED, default=1, show_default=True,
              help="First seed; the others follow.")  # fmt: skip
@budget_option("Start no run after this time; --into continues later.")
@engine_option()
@campaign_into_option
@campaign_out_option
@json_option("Print only bugs.json.")
def bugs(
    names: Sequence[str],
    tries: int,
    first_seed: int,
    budget: float | None,
    engine: str,
    into: Path | None,
    out: Path,
    as_json: bool,
) -> int:
    """Play each named bug (all by default) on the release that has it and on the one that fixed
    it, and print the table.

    A bug is found when its own guarantee is violated in one of its sub-kinds. Exit codes: 0 all
    are found in eight of ten tries and never on the fixed release, 1 one is not, 2 one could not
    be judged.
    """
    from urteil.harness.hunt import Ledger
    from urteil.harness.hunt.bug_table import bug_jobs, bug_table, bug_table_text
    from urteil.harness.hunt.run_process import play_runs, prune

    chosen = chosen_bugs(names)
    folder = campaign_folder(into, out, "bugs")
    ledger = Ledger(folder / "ledger.jsonl")
    jobs = due_jobs(bug_jobs(chosen, range(first_seed, first_seed + tries)), ledger, budget)
    with closing(play_runs(jobs, folder / "runs", engine=engine)) as rows:
        for row in rows:
            ledger.add(prune(row) if row.verdict == "PASS" else row)
            print_row(row)
            _write_table(folder, bug_table(chosen, ledger.rows))
    table = bug_table(chosen, ledger.rows)
    _write_table(folder, table)
    click.echo((folder / "bugs.json").read_text() if as_json else bug_table_text(table), nl=False)
    click.echo(f"{table.verdict}  {folder}", err=True)
    return EXIT_CODES[table.verdict]


def chosen_bugs(names: Sequence[str]) -> list[KnownBug]:
    """The named bugs; all when none is named. Raises UsageError for an unknown name."""
    from urteil.harness.known_bugs import KNOWN_BUGS

    chosen = [require_known("bug", name.lower(), KNOWN_BUGS) for name in names] or list(KNOWN_BUGS)
    return [KNOWN_BUGS[name] for name in dict.fromkeys(chosen)]


def _write_table(folder: Path, table: BugTable) -> None:
    from urteil.harness.hunt.bug_table import bug_table_text
    from urteil.harness.scenario import save
    from urteil.reports.matrix import write_bug_table

    save(folder / "bugs.json", table)
    (folder / "bugs.md").write_text(bug_table_text(table))
    write_bug_table(folder, table)
