"""`urteil export` and `urteil import`: histories in another tool's form."""

from __future__ import annotations

import shlex
from pathlib import Path

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


@click.command("import", short_help="Judge a history of Jepsen's, without a cluster.")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--format", "form", type=FORMS, default="jepsen", show_default=True)
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
    form: str,
    acks: str,
    idempotent: bool,
    isolation: str,
    engine: str,
    out: Path,
    as_json: bool,
) -> int:
    """Judge FILE, the history.edn of a run of jepsen.tests.kafka; no cluster is needed.

    It may be packed by gzip; of a folder of Jepsen's store its history is taken. What a history
    does not tell, the settings of its clients, the options do.
    """
    from urteil.harness.jepsen.load import HistoryError, history_in, load
    from urteil.harness.runner import judge_again
    from urteil.harness.runner.folder import dated_folder

    try:
        file = history_in(file)
    except HistoryError as error:
        raise click.UsageError(str(error)) from None
    run_dir = dated_folder(out, f"jepsen-{file.name.split('.')[0]}")
    words = ["urteil", "import", str(file), "--acks", acks, "--isolation", isolation]
    words += [] if idempotent else ["--no-idempotent"]
    try:
        load(
            file,
            run_dir,
            acks=-1 if acks == "all" else int(acks),
            idempotent=idempotent,
            isolation=isolation,
            command=shlex.join(words),
        )
    except HistoryError as error:
        run_dir.rmdir()
        told = str(error)
        raise click.UsageError(told if str(file) in told else f"{file}: {told}") from None
    result = judge_again(run_dir, engine=engine)
    draw_report(run_dir)
    return tell(run_dir, result, as_json)
