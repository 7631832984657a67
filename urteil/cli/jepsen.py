"""`urteil export` and `urteil import`: histories of and for other tools."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from urteil.cli.options import engine_option, json_option, out_option, run_argument
from urteil.cli.run import draw_report, print_result
from urteil.cli.run_lookup import readable_run

if TYPE_CHECKING:
    from urteil.harness.verify.result import Result

FORMS = click.Choice(["jepsen"])


@click.command("export", short_help="Write the history of a run for jepsen.tests.kafka.")
@run_argument("run")
@click.option("--format", "form", type=FORMS, default="jepsen", show_default=True,
              help="Form of the history.")  # fmt: skip
@click.option(
    "--to",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write.  [default: in RUN]",
)
@out_option()
def export_command(run: str, form: str, to: Path | None, out: Path) -> None:
    """Write the history of RUN (a folder, or `latest`) in the form of jepsen.tests.kafka."""
    import pyarrow as pa

    from urteil.harness.imports.jepsen.export import export
    from urteil.harness.verify.evidence import files

    folder = readable_run(run, out, "scenario.json", "run.json")
    if missing := [table for table in ("sends", "polls") if not files(folder, table)]:
        message = f"{folder.name} has no evidence/{' and no evidence/'.join(missing)}"
        if len(missing) > 1:
            raise click.UsageError(f"{message}: there is nothing to export")
        click.echo(f"{message}: the export is incomplete", err=True)
    path = to or folder / "history.edn"
    try:
        ops = export(folder, path)
    except (pa.ArrowException, OSError) as error:
        raise click.ClickException(f"{folder.name} cannot be exported: {error}") from None
    click.echo(f"{ops} operations", err=True)
    click.echo(path)


@click.command("import", short_help="Judge a recorded history, without a cluster.")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["jepsen", "tables"]),
    help="Form of the history.  [default: by FILE]",
)
@click.option("--acks", type=click.Choice(["all", "1", "0"]), default="all", show_default=True,
              help="acks of the producers.")  # fmt: skip
@click.option("--idempotent/--no-idempotent", default=True, show_default=True,
              help="Whether the producers were idempotent.")  # fmt: skip
@click.option(
    "--isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_committed",
    show_default=True,
    help="Isolation level of the readers.",
)
@click.option(
    "--all",
    "judge_all",
    is_flag=True,
    help="Judge every history below the folder FILE; the exit code is the worst one.",
)
@click.option(
    "--pictures/--no-pictures",
    default=False,
    show_default=True,
    help="Draw timeline and record histories in the report, as `urteil report RUN` does.",
)
@engine_option()
@out_option()
@json_option("Print only result.json; with --all one JSON object for each line.")
def import_command(
    file: Path,
    form: str | None,
    acks: str,
    idempotent: bool,
    isolation: str,
    judge_all: bool,
    pictures: bool,
    engine: str,
    out: Path,
    as_json: bool,
) -> int:
    """Judge a recorded history. No cluster is needed.

    FILE is the history.edn of a jepsen.tests.kafka run (also packed by gzip, or the folder of a
    test in Jepsen's store), or a folder of tables in Parquet, CSV or JSON, of which `sends` and
    `reads` suffice (docs/guide/own.md). The options give the settings of the recorded clients.

    With --all, FILE is a complete store. Each line shows the verdict, the history, the violated
    guarantees and the folder of the run. A history that cannot be read gets ERROR and the reason,
    and the others are still judged. The exit code is the worst one: 0 PASS, 2 UNKNOWN, 1 FAIL,
    254 if a history could not be read.
    """
    settings: dict[str, Any] = {"acks": -1 if acks == "all" else int(acks)}
    settings |= {"idempotent": idempotent, "isolation": isolation}
    words = ["urteil", "import", "--acks", acks, "--isolation", isolation]
    words += [] if idempotent else ["--no-idempotent"]
    request = ImportRequest(form, settings, words, pictures, engine, out)
    if judge_all:
        from urteil.cli.history_store import judge_store

        return judge_store(file, request, as_json=as_json)
    run_dir, result = import_and_judge(file, request)
    return print_result(run_dir, result, as_json)


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The options of `urteil import`."""

    form: str | None
    settings: dict[str, Any]
    words: list[str]
    pictures: bool
    engine: str
    out: Path


def import_and_judge(file: Path, request: ImportRequest) -> tuple[Path, Result]:
    """Import one history as a run and judge it. Raises UsageError for a history that is invalid."""
    from urteil.harness.imports.tables.importer import tables_in
    from urteil.harness.run.folder import dated_folder
    from urteil.harness.run.judging import judge_again

    is_tables = (
        request.form == "tables" if request.form else file.is_dir() and bool(tables_in(file))
    )
    make = _of_tables if is_tables else _of_jepsen
    name = file.resolve().name if is_tables else f"jepsen-{file.name.split('.')[0]}"
    run_dir = dated_folder(request.out, name)
    try:
        command = shlex.join([*request.words[:2], str(file), *request.words[2:]])
        make(file, run_dir, request.settings | {"command": command})
    except BaseException:
        shutil.rmtree(run_dir)
        raise
    result = judge_again(run_dir, engine=request.engine)
    draw_report(run_dir, pictures=request.pictures)
    return run_dir, result


def _of_jepsen(path: Path, run_dir: Path, settings: dict[str, Any]) -> None:
    from urteil.harness.imports.jepsen.importer import HistoryError, history_in, load

    try:
        load(history_in(path), run_dir, **settings)
    except HistoryError as error:
        message = str(error)
        raise click.UsageError(message if str(path) in message else f"{path}: {message}") from None


def _of_tables(path: Path, run_dir: Path, settings: dict[str, Any]) -> None:
    from urteil.harness.imports.tables.importer import load
    from urteil.harness.imports.tables.text_tables import TablesError

    try:
        load(path, run_dir, **settings)
    except TablesError as error:
        raise click.UsageError(str(error)) from None
