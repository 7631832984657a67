"""`urteil shrink`: the smallest schedule that reproduces the anomaly of a failed run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from urteil.cli.options import (
    budget_option,
    engine_option,
    into_option,
    json_option,
    out_option,
    run_argument,
)
from urteil.cli.run_lookup import readable_run

if TYPE_CHECKING:
    from urteil.harness.hunt.shrinking import Report, Step
    from urteil.harness.hunt.shrinking.shrink_session import Session

EXIT_CODES = {"smallest": 0, "budget": 2, "not reproduced": 2, "control": 2}
_COLUMNS = "{:<44} {:>6} {:>8} {:>7} {:>7} {:>9} {:>7}  {}"


@click.command(short_help="Find the smallest schedule that reproduces a failure.")
@run_argument()
@click.option(
    "--guarantee", help="Guarantee to violate again.  [default: that of the first finding]"
)
@click.option("--sub-kind", help="Its sub-kind.  [default: that of the first finding]")
@click.option(
    "--hits",
    type=click.IntRange(1, 100),
    default=2,
    show_default=True,
    help="Tries that must show the anomaly for a smaller schedule to be accepted ...",
)
@click.option(
    "--tries",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="... out of this number.",
)
@click.option(
    "--confirm",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Number of runs of the smallest schedule.",
)
@budget_option("Start no try after this time; the same command continues.  [default: no limit]")
@engine_option()
@into_option("Folder of the tries.  [default: shrink-RUN beside the run]")
@out_option()
@json_option("Print only shrink.json.")
def shrink(
    run_dir: str,
    guarantee: str | None,
    sub_kind: str | None,
    out: Path,
    into: Path | None,
    as_json: bool,
    **arguments: Any,
) -> int:
    """Find the smallest schedule that reproduces the anomaly of RUN (a folder, or `latest`).

    Plays fewer faults, shorter faults and less load. Exit codes: 0 smallest found, 2 not found
    (time limit, the anomaly did not occur again, or it also occurs without faults).
    """
    from urteil.harness.hunt.shrinking import NoAnomaly, Rule, anomaly_of
    from urteil.harness.hunt.shrinking.shrink_session import Session
    from urteil.harness.verify.result import load_result

    folder = readable_run(run_dir, out, "result.json", "scenario.json", "run.json")
    _must_be_played(folder)
    budget = arguments["budget"]
    try:
        session = Session(
            run_dir=folder,
            folder=(into or folder.parent / f"shrink-{folder.name}").resolve(),
            anomaly=anomaly_of(folder, load_result(folder), guarantee=guarantee, sub_kind=sub_kind),
            rule=Rule(hits=arguments["hits"], tries=arguments["tries"]),
            deadline=time.monotonic() + (float("inf") if budget is None else 60 * budget),
            confirm=arguments["confirm"],
            engine=arguments["engine"],
        )
    except (NoAnomaly, ValueError) as error:
        raise click.UsageError(str(error)) from None
    report = session.run(_step_printer(as_json), _discard_line)
    if as_json:
        click.echo((session.folder / "shrink.json").read_text(), nl=False)
    else:
        _print_report(session, report)
    return EXIT_CODES[report.ended]


def _must_be_played(folder: Path) -> None:
    """Raise UsageError for a run whose target cannot be started again."""
    from urteil.harness.scenario import load_scenario
    from urteil.harness.targets import parse_target
    from urteil.harness.targets.external import PREFIX

    target = load_scenario(folder).target
    try:
        if not target.startswith(PREFIX):
            parse_target(target)
    except ValueError as error:
        raise click.UsageError(f"{folder.name} cannot be played again: {error}") from None


def _discard_line(_line: str) -> None:
    """Discard log lines of tries; each try's folder has its log."""


def _step_printer(as_json: bool) -> Any:
    """Print the table's head; return the function that prints a step."""
    head = ("step", "faults", "fault s", "load s", "rec/s", "producers", "shown", "")
    click.echo(_COLUMNS.format(*head).rstrip(), err=as_json)

    def print_step(step: Step) -> None:
        hits = f"{step.hits} of {step.tries}"
        remark = "kept" if step.kept else ""
        if step.others:
            remark += f"  (also: {', '.join(map(str, step.others))})"
        line = _COLUMNS.format(
            step.what[:44], step.faults, step.fault_s, round(step.load_s, 1),
            round(step.rate_records_per_s, 1), step.producers, hits, remark,
        )  # fmt: skip
        click.echo(line.rstrip(), err=as_json)

    return print_step


def _print_report(session: Session, report: Report) -> None:
    from urteil.cli.schedule import lines_of
    from urteil.harness.confidence import lower_bound

    ends = {
        "smallest": f"the smallest schedule that shows {report.anomaly}",
        "budget": f"the time is up; the best so far that shows {report.anomaly} "
        "(the same command continues)",
        "not reproduced": f"the schedule as it was did not show {report.anomaly} again",
        "control": "without any fault a promise is broken too: no schedule is to blame",
    }
    click.echo(f"\n{ends[report.ended]}:")
    for line in lines_of(report.schedule.faults):
        click.echo(line)
    if report.tries:
        least = lower_bound(report.hits, report.tries)
        click.echo(
            f"shown in {report.hits} of {report.tries} tries "
            f"(at least {least:.0%} with 95 % confidence)"
        )
    click.echo(f"again: {session.command()}")
    click.echo(f"tries: {session.folder}")
