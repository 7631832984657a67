"""`urteil export` and `urteil import`: histories in another tool's form."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import click

from urteil.cli.options import engine_option, json_option, out_option, run_argument
from urteil.cli.run import draw_report, tell
from urteil.cli.runs import whole_run

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
@engine_option()
@out_option()
@json_option("Print result.json, and nothing else.")
def import_command(
    file: Path,
    form: str | None,
    acks: str,
    idempotent: bool,
    isolation: str,
    engine: str,
    out: Path,
    as_json: bool,
) -> int:
    """Judge FILE, the history.edn of a run of jepsen.tests.kafka, or a folder of tables
    (Parquet, CSV or JSON) of which `sends` and `reads` are enough (docs/own.md); no cluster is
    needed.

    A history of Jepsen's may be packed by gzip; of a folder of its store the history is taken.
    What a history does not tell, the settings of its clients, the options do.
    """
    from urteil.harness.elsewhere.load import tables_in
    from urteil.harness.runner import judge_again
    from urteil.harness.runner.folder import dated_folder

    is_tables = form == "tables" if form else file.is_dir() and bool(tables_in(file))
    make = _of_tables if is_tables else _of_jepsen
    name = file.resolve().name if is_tables else f"jepsen-{file.name.split('.')[0]}"
    settings: dict[str, Any] = {"acks": -1 if acks == "all" else int(acks)}
    settings |= {"idempotent": idempotent, "isolation": isolation}
    words = ["urteil", "import", str(file), "--acks", acks, "--isolation", isolation]
    words += [] if idempotent else ["--no-idempotent"]
    run_dir = dated_folder(out, name)
    try:
        make(file, run_dir, settings | {"command": shlex.join(words)})
    except click.UsageError:
        shutil.rmtree(run_dir)
        raise
    result = judge_again(run_dir, engine=engine)
    draw_report(run_dir)
    return tell(run_dir, result, as_json)


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
