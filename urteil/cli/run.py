"""`urteil run`, `verify` and `report`: a run, or one of its steps repeated."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from urteil.cli import completion
from urteil.cli.coverage import keep_coverage, prepare_coverage
from urteil.cli.hosts import require_hosts
from urteil.cli.options import (
    SEED,
    Number,
    controllers_option,
    engine_option,
    hosts_option,
    json_option,
    master_option,
    out_option,
    quorum_option,
    run_argument,
    summary_option,
)
from urteil.cli.requested_scenario import requested_scenario
from urteil.cli.run_lookup import find_run, readable_run
from urteil.harness.clients.libraries import LIBRARIES
from urteil.harness.clients.promises import PROMISES

if TYPE_CHECKING:
    from urteil.harness.scenario import Scenario
    from urteil.harness.verify.result import Result

EXIT_CODES = {"PASS": 0, "FAIL": 1, "UNKNOWN": 2}

schedule_option = click.option(
    "--schedule",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Play the schedule of this file (docs/guide/schedules.md).",
)
_engine = engine_option()
_result_json = json_option("Print only result.json.")


def _check_master(engine: str, master: str | None) -> None:
    from urteil.harness.verify.engines.choice import check_master

    try:
        check_master(engine, master)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


_master = master_option("Spark master [default: local[2]]")


@click.command(short_help="Play a scenario, judge it and write its report.")
@click.argument("scenario", shell_complete=completion.scenarios)
@click.option("--seed", type=SEED, help="Seed of the run.  [default: random, and printed]")
@click.option(
    "--target",
    default=None,
    help="urteil, kafka[:VERSION], kafka-kraft[:VERSION], mix:KIND,KIND,... or external:FILE.toml "
    "(`urteil list targets`)  [default: urteil]",
)
@click.option(
    "--runtime",
    type=click.Choice(["process", "docker", "ssh"]),
    help="Where the nodes run.  [default: process, or docker if the scenario requires it]",
)
@hosts_option()
@click.option(
    "--client-hosts",
    metavar="NAME,NAME",
    help="With --hosts: run the workload's clients on these of its hosts.",
)
@click.option(
    "--brokers", type=click.IntRange(1, 9), help="Number of brokers.  [default: the scenario's]"
)
@click.option(
    "--zookeepers", type=click.IntRange(1, 5),
    help="Number of ZooKeeper servers.  [default: the scenario's]",
)  # fmt: skip
@controllers_option()
@quorum_option()
@click.option("--duration-s", type=Number(0, 86_400), help="Seconds of load.")
@click.option("--rate", type=Number(0, 1_000_000), help="Records/s over all producers.")
@click.option(
    "--mutant",
    help="A seeded bug of our broker (`urteil list mutants`), or a drawn one (BUG.json).",
    shell_complete=completion.mutants,
)
@click.option(
    "--coverage",
    is_flag=True,
    help="Record which lines of our broker run, for `urteil coverage`.",
)
@click.option("--client", type=click.Choice(LIBRARIES), help="Library of the workload's clients.")
@click.option("--records", type=click.IntRange(1), help="Number of records that `bulk` sends.")
@click.option(
    "--app", metavar="CMD", help="The program that `pipeline` judges (docs/guide/workloads.md)."
)
@click.option("--promise", type=click.Choice(PROMISES), help="The promise of that program.")
@click.option(
    "--option",
    metavar="NAME=VALUE",
    multiple=True,
    help="An option of the workload (`urteil list workload-options`); repeatable.",
)
@schedule_option
@_engine
@_master
@out_option()
@click.option(
    "--logs",
    type=click.Choice(["all", "failure", "none"]),
    default="all",
    show_default=True,
    help="Keep the logs of all processes always, unless the verdict is PASS, or never.",
)
@summary_option("the verdict")
@_result_json
def run(
    scenario: str,
    engine: str,
    master: str | None,
    out: Path,
    logs: str,
    summary: Path | None,
    as_json: bool,
    **arguments: Any,
) -> int:
    """Play SCENARIO (`urteil list scenarios`), judge it and write its report."""
    from urteil.cli.progress import progress
    from urteil.harness.run.playable import NotPlayable
    from urteil.harness.run.runner import run_scenario
    from urteil.report_drawing import DRAWING, keep_logs

    _check_master(engine, master)
    requested = requested_scenario(scenario, arguments)
    if requested.runtime == "docker":
        _must_have_engine()
    if requested.runtime == "ssh":
        require_hosts(Path(requested.hosts), filter_packets=_filters_packets(requested))
    if requested.coverage:
        prepare_coverage()
    try:
        with progress(requested.duration_s, quiet=as_json) as print_line:
            run_dir, result = run_scenario(
                requested,
                out=out,
                engine=engine,
                master=master,
                command=_command(requested, arguments, engine, master),
                log=print_line,
                preload=DRAWING,
            )
    except NotPlayable as reason:
        raise click.UsageError(f"--target {requested.target}: {reason}") from None
    if requested.coverage:
        keep_coverage(run_dir, requested.name, out)
    keep_logs(run_dir, "none" if logs == "none" else "all", failed=True)
    draw_report(run_dir)
    if summary is not None:
        from urteil.reports.markdown import summary as text_of

        summarise(summary, text_of(run_dir), f"urteil report {run_dir} --format summary")
    keep_logs(run_dir, logs, failed=EXIT_CODES[result.verdict] != 0)
    return print_result(run_dir, result, as_json)


@click.command(short_help="Judge the evidence of a run again.")
@run_argument()
@_engine
@_master
@out_option()
@_result_json
def verify(run_dir: str, engine: str, master: str | None, out: Path, as_json: bool) -> int:
    """Judge the evidence of RUN (a folder, or `latest`) again."""
    from urteil.harness.run.heal_request import is_being_played
    from urteil.harness.run.judging import judge_again

    _check_master(engine, master)
    folder = readable_run(run_dir, out, "scenario.json", "run.json")
    if is_being_played(folder):  # the evidence is incomplete
        raise click.UsageError(f"{folder.name} is being played: its lab judges it at the end")
    return print_result(folder, judge_again(folder, engine=engine, master=master), as_json)


@click.command(short_help="Draw the report of a run again.")
@run_argument()
@click.option(
    "--format",
    "form",
    type=click.Choice(["page", "summary", "issue", "phases"]),
    help="page draws report.html; the others print text.",
    default="page",
    show_default=True,
)
@out_option()
def report(run_dir: str, form: str, out: Path) -> None:
    """Draw the report of RUN (a folder, or `latest`) again.

    The report of a damaged or unjudged run shows the readable parts and names the missing ones.
    `--format issue` prints the text of an issue with the schedule (the smallest one if the run
    was shrunk), `--format summary` the Markdown of `run --summary`, and `--format phases` the
    time of each phase.
    """
    from urteil.report_drawing import draw
    from urteil.reports.markdown import issue, summary
    from urteil.reports.run_loading import NoRun

    folder = find_run(run_dir, out, needs="result.json", accept_incomplete=True)
    try:
        if form == "page":
            for page in draw(folder):
                click.echo(page)
        elif form == "phases":
            from urteil.harness.stopwatch import lines
            from urteil.reports.run_loading import load_run

            click.echo("\n".join(lines(load_run(folder).result.phases)))
        else:
            click.echo((issue if form == "issue" else summary)(folder), nl=False)
    except NoRun as error:
        raise click.UsageError(str(error)) from None


def _filters_packets(scenario: Scenario) -> bool:
    from urteil.chaos.faults import FAULTS
    from urteil.chaos.faults.base.packet_fault import PacketFault

    return any(issubclass(FAULTS[fault.fault], PacketFault) for fault in scenario.faults)


def _must_have_engine() -> None:
    """Raise ClickException with cause and remedy when no container engine answers."""
    from urteil.harness.dependencies.installation import MissingDependency
    from urteil.harness.runtimes.containers.engine import connect

    try:
        connect().client.close()
    except MissingDependency as error:
        raise click.ClickException(f"--runtime docker: {error}") from None


def _command(scenario: Scenario, arguments: dict[str, Any], engine: str, master: str | None) -> str:
    """The command that plays this run again."""
    words = ["urteil", "run", scenario.name, "--seed", str(scenario.seed)]
    words += ["--target", scenario.target] if scenario.target != "urteil" else []
    words += ["--runtime", scenario.runtime] if arguments["runtime"] is not None else []
    cluster = ("brokers", "zookeepers", "controllers", "quorum")
    words += ["--hosts", scenario.hosts] if scenario.hosts else []
    words += ["--client-hosts", ",".join(scenario.client_hosts)] if scenario.client_hosts else []
    load = ("duration_s", "rate", "records", "client", "app", "promise")
    for key in (*cluster, *load, "mutant", "schedule"):
        if arguments.get(key) is not None:
            words += [f"--{key.replace('_', '-')}", f"{arguments[key]}"]
    for option in arguments.get("option", ()):
        words += ["--option", option]
    words += ["--coverage"] if scenario.coverage else []
    words += ["--engine", engine] if engine != "auto" else []
    words += ["--master", master] if master else []
    return shlex.join(words)


def draw_report(run_dir: Path, *, pictures: bool = True) -> None:
    """Write the report. A failure is printed only: the verdict is on disk already."""
    from urteil.harness.stopwatch import Spent, Stopwatch
    from urteil.harness.verify.result import add_phases
    from urteil.report_drawing import draw

    spent: list[Spent] = []
    try:
        with Stopwatch({}, spent)("report"):
            draw(run_dir, pictures=pictures)
    except Exception as error:
        _print_line(
            f"the report could not be drawn ({type(error).__name__}: {error}); "
            f"`urteil report {run_dir}` tries again"
        )
        return
    add_phases(run_dir, spent)


def summarise(path: Path, text: str, printing: str) -> None:
    """Append `text` to a file. A failure is printed only."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        _print_line(f"--summary {path}: {error.strerror}; `{printing}` prints it")


def print_result(run_dir: Path, result: Result, as_json: bool) -> int:
    if as_json:
        sys.stdout.write((run_dir / "result.json").read_text())
    else:
        from urteil.cli.verdict_table import print_verdict

        print_verdict(run_dir, result)
    return EXIT_CODES[result.verdict]


def _print_line(line: str) -> None:
    click.echo(line, err=True)
