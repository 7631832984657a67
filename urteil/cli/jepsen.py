"""`urteil export` and `urteil import`: histories in another tool's form."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from urteil.cli.options import engine_option, json_option, out_option, run_argument
from urteil.cli.run import draw_report, tell
from urteil.cli.runs import whole_run

if TYPE_CHECKING:
    from urteil.harness.verify.result import Result

FORMS = click.Choice(["jepsen"])


@click.command("export", short_help="A history as jepsen.tests.kafka reads it.")
@run_argument("run")
@click.option("--format", "form", type=FORMS, default="jepsen", show_default=True)
@click.option("--to", type=click.Path(dir_okay=False, path_type=Path), help="[default: in RUN]")
@out_option()
def export_command(run: str, form: str, to: Path | None, out: Path) -> None:
    """Write the history of RUN (a folder, or `latest`) as jepsen.tests.kafka reads it."""
    import pyarrow as pa

    from urteil.harness.jepsen.export import export
    from urteil.harness.verify.evidence import files

    folder = whole_run(run, out, "scenario.json", "run.json")
    if lacks := [table for table in ("sends", "polls") if not files(folder, table)]:
        told = f"{folder.name} has no evidence/{' and no evidence/'.join(lacks)}"
        if len(lacks) > 1:
            raise click.UsageError(f"{told}: there is nothing to export")
        click.echo(f"{told}: what is exported lacks it", err=True)
    path = to or folder / "history.edn"
    try:
        ops = export(folder, path)
    except (pa.ArrowException, OSError) as error:
        raise click.ClickException(f"{folder.name} cannot be exported: {error}") from None
    click.echo(f"{ops} operations", err=True)
    click.echo(path)


@click.command("import", short_help="Judge a history that others recorded, without a cluster.")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(["jepsen", "tables"]), help="[default: by FILE]"
)
@click.option("--acks", type=click.Choice(["all", "1", "0"]), default="all", show_default=True)
@click.option("--idempotent/--no-idempotent", default=True, show_default=True)
@click.option(
    "--isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_committed",
    show_default=True,
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Judge each history in the folder FILE and below: a line each, the worst exit code.",
)
@click.option(
    "--pictures/--no-pictures",
    default=False,
    show_default=True,
    help="Draw the timeline and the lives of records, as `urteil report RUN` does.",
)
@engine_option()
@out_option()
@json_option("Print result.json, and nothing else; with --all a JSON object a line.")
def import_command(
    file: Path,
    form: str | None,
    acks: str,
    idempotent: bool,
    isolation: str,
    every: bool,
    pictures: bool,
    engine: str,
    out: Path,
    as_json: bool,
) -> int:
    """Judge FILE, the history.edn of a run of jepsen.tests.kafka, or a folder of tables
    (Parquet, CSV or JSON) of which `sends` and `reads` are enough (docs/guide/own.md). No cluster
    is needed.

    A history of Jepsen's may be packed by gzip; of a folder of its store the history is taken.
    What a history does not tell, the settings of its clients, the options do.

    With --all FILE is a whole store: each line has a verdict, the history, what broke, and the
    run's folder. A history that cannot be read has the word ERROR and the reason; the others are
    judged all the same. The exit code is the worst of all: 0 PASS, 2 UNKNOWN, 1 FAIL, 254 where a
    history could not be read.
    """
    settings: dict[str, Any] = {"acks": -1 if acks == "all" else int(acks)}
    settings |= {"idempotent": idempotent, "isolation": isolation}
    words = ["urteil", "import", "--acks", acks, "--isolation", isolation]
    words += [] if idempotent else ["--no-idempotent"]
    asked = Asked(form, settings, words, pictures, engine, out)
    if every:
        from urteil.cli.store import judge_store

        return judge_store(file, asked, as_json=as_json)
    run_dir, result = judged(file, asked)
    return tell(run_dir, result, as_json)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says of the histories that it names."""

    form: str | None
    settings: dict[str, Any]
    words: list[str]
    pictures: bool
    engine: str
    out: Path


def judged(file: Path, asked: Asked) -> tuple[Path, Result]:
    """The run that is made of one history, and its result; a usage error says what is wrong with
    the history."""
    from urteil.harness.elsewhere.load import tables_in
    from urteil.harness.runner.folder import dated_folder
    from urteil.harness.runner.judging import judge_again

    is_tables = asked.form == "tables" if asked.form else file.is_dir() and bool(tables_in(file))
    make = _of_tables if is_tables else _of_jepsen
    name = file.resolve().name if is_tables else f"jepsen-{file.name.split('.')[0]}"
    run_dir = dated_folder(asked.out, name)
    try:
        command = shlex.join([*asked.words[:2], str(file), *asked.words[2:]])
        make(file, run_dir, asked.settings | {"command": command})
    except click.UsageError:
        shutil.rmtree(run_dir)
        raise
    result = judge_again(run_dir, engine=asked.engine)
    draw_report(run_dir, pictures=asked.pictures)
    return run_dir, result


def _of_jepsen(path: Path, run_dir: Path, settings: dict[str, Any]) -> None:
    from urteil.harness.jepsen.load import HistoryError, history_in, load

    try:
        load(history_in(path), run_dir, **settings)
    except HistoryError as error:
        told = str(error)
        raise click.UsageError(told if str(path) in told else f"{path}: {told}") from None


def _of_tables(path: Path, run_dir: Path, settings: dict[str, Any]) -> None:
    from urteil.harness.elsewhere.load import load
    from urteil.harness.elsewhere.texts import TablesError

    try:
        load(path, run_dir, **settings)
    except TablesError as error:
        raise click.UsageError(str(error)) from None
