"""`urteil coverage`: which scenarios execute which lines of the broker."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from urteil.cli.options import SEED, json_option, out_option

if TYPE_CHECKING:
    from urteil.harness.hunt.coverage import CoverageTable
    from urteil.suites.coverage.collection import SourceFile

SHOWN = 3
SEED_LIMIT_S = 300.0


@click.command(short_help="Show which scenarios execute which lines of our broker.")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--simulate",
    type=click.IntRange(1, 100_000),
    metavar="SEEDS",
    help="First play this number of seeds of the simulation, and add their lines.",
)
@click.option("--first-seed", type=SEED, default=1, show_default=True,
              help="First of these seeds.")  # fmt: skip
@click.option("--missing", is_flag=True, help="Print only lines that no scenario executes.")
@json_option("Print for each file the executable lines and the scenarios by line.")
@out_option()
def coverage(
    files: Sequence[str],
    simulate: int | None,
    first_seed: int,
    missing: bool,
    as_json: bool,
    out: Path,
) -> None:
    """Show which scenarios execute the lines of FILE, as `broker/groups/group.py`.

    A FILE that is a folder stands for its files. Without FILE, a table of all folders. `urteil run
    SCENARIO --coverage` adds a scenario's lines to coverage.db in --out. Lines of a file that
    changed since then are not shown.
    """
    table = _table(out)
    if simulate is not None:
        _simulate(table, range(first_seed, first_seed + simulate))
    sources = _chosen(files)
    if not table.scenarios():
        raise click.UsageError(
            f"{out / 'coverage.db'} is empty: `urteil run SCENARIO --coverage` fills it, and so "
            "does `urteil coverage --simulate 10`"
        )
    if as_json:
        click.echo(json.dumps({source.name: _as_json(table, source) for source in sources}))
    elif missing:
        _print_lines(_missing_lines(table, sources))
    elif files:
        for source in sources:
            _print_lines(_listing(table, source))
    else:
        click.echo(_summary(table, sources), nl=False)


def prepare_coverage() -> None:
    """Compile the broker before a run records its lines."""
    from urteil.suites.coverage.compilation import compile_broker

    compile_broker()


def keep_coverage(run_dir: Path, scenario: str, out: Path) -> None:
    """Add the lines of a run to the table, and remove its files of marks."""
    from urteil.harness.cluster import LINES
    from urteil.suites.coverage.collection import collect

    _table(out).add(scenario, collect(run_dir / LINES))
    shutil.rmtree(run_dir / LINES, ignore_errors=True)


def _table(out: Path) -> CoverageTable:
    from urteil.harness.hunt.coverage import CoverageTable

    return CoverageTable(out / "coverage.db")


def _simulate(table: CoverageTable, seeds: range) -> None:
    from urteil.harness.hunt.coverage import SIMULATION
    from urteil.harness.hunt.simulation import NoSimulation, simulate
    from urteil.suites.coverage.collection import collect

    with tempfile.TemporaryDirectory(prefix="urteil-lines-") as folder:
        try:
            played = simulate(seeds, limit_s=SEED_LIMIT_S * len(seeds), lines=Path(folder))
        except NoSimulation as error:
            raise click.UsageError(f"--simulate: {error}") from None
        if len(played.runs) < len(seeds):
            raise click.ClickException(
                f"the simulation ended after {len(played.runs)} of {len(seeds)} seeds: "
                f"{played.output}"
            )
        for run in played.runs:
            for check_error in run.errors:
                click.echo(f"seed {run.seed}: {check_error}", err=True)
        table.add(SIMULATION, collect(Path(folder)))


def _chosen(names: Sequence[str]) -> list[SourceFile]:
    """The named source files of the broker, and those of named folders; all without a name."""
    from urteil.suites.coverage.collection import source_file, source_files
    from urteil.suites.source_hook import BROKER

    if not names:
        return list(source_files())
    chosen = []
    for name in names:
        path = BROKER.parent / name
        is_inside = path.resolve().is_relative_to(BROKER) and ".." not in Path(name).parts
        if not is_inside or not (path.is_dir() or (path.is_file() and path.suffix == ".py")):
            raise click.UsageError(
                f"{name}: no source file of the broker; name one from the checkout's top, as "
                "broker/groups/group.py, or a folder, as broker/groups"
            )
        chosen += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [source_file(path) for path in dict.fromkeys(chosen)]


def _as_json(table: CoverageTable, source: SourceFile) -> dict[str, object]:
    by_line = table.scenarios_by_line(source.name, source.digest)
    return {"executable": source.executable, "scenarios": by_line}


def _missing_lines(table: CoverageTable, sources: Iterable[SourceFile]) -> Iterator[str]:
    from urteil.harness.hunt.coverage import line_ranges

    for source in sources:
        by_line = table.scenarios_by_line(source.name, source.digest)
        if lines := [line for line in source.executable if line not in by_line]:
            yield f"{source.name}: {line_ranges(lines)}"


def _listing(table: CoverageTable, source: SourceFile) -> Iterator[str]:
    """The source with the number of scenarios that execute each line, and some of their names."""
    by_line = table.scenarios_by_line(source.name, source.digest)
    executable = set(source.executable)
    names: list[str] = []
    yield source.name
    for number, text in enumerate(source.text.splitlines(), 1):
        scenarios = by_line.get(number, [])
        count = str(len(scenarios) or "none") if number in executable else ""
        comment = f"  # {_first_names(scenarios)}" if scenarios and scenarios != names else ""
        names = scenarios or names
        yield f"{number:>5} {count:>5}  {text}{comment}".rstrip()


def _first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _summary(table: CoverageTable, sources: Iterable[SourceFile]) -> str:
    """A table of the broker's folders."""
    from urteil.harness.hunt.coverage import SIMULATION
    from urteil.harness.hunt.markdown_table import markdown

    counts: dict[str, list[int]] = {}
    for source in sources:
        by_line = table.scenarios_by_line(source.name, source.digest)
        lines = [by_line.get(line, []) for line in source.executable]
        count = counts.setdefault(str(Path(source.name).parent), [0, 0, 0])
        count[0] += len(lines)
        count[1] += sum(bool(line) for line in lines)
        count[2] += sum(SIMULATION in line for line in lines)
    counts["all"] = [sum(column) for column in zip(*counts.values(), strict=True)]
    heads = ("folder", "lines", "run", "by none", "share", "in simulation")
    rows = [
        [folder, str(lines), str(run), str(lines - run), _share(run, lines), _share(sim, lines)]
        for folder, (lines, run, sim) in counts.items()
        if lines
    ]
    return markdown(heads, rows) + f"\nfrom {', '.join(table.scenarios())}\n"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}"


def _print_lines(lines: Iterable[str]) -> None:
    click.echo("\n".join(lines))
