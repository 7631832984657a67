"""`urteil shrink`: from a run that failed to the smallest schedule that shows it again."""

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
from urteil.cli.runs import whole_run

if TYPE_CHECKING:
    from urteil.harness.shrink import Report, Step
    from urteil.harness.shrink.session import Session

EXIT_CODES = {"smallest": 0, "budget": 2, "not reproduced": 2, "control": 2}
_COLUMNS = "{:<44} {:>6} {:>8} {:>7} {:>7} {:>9} {:>7}  {}"


@click.command(short_help="The smallest schedule that shows it again.")
@run_argument()
@click.option("--guarantee", help="Whose violation to show again.  [default: the first found]")
@click.option("--sub-kind", help="Which kind of it.  [default: the first found]")
@click.option(
    "--hits",
    type=click.IntRange(1, 100),
    default=2,
    show_default=True,
    help="Tries that must show it, for a smaller schedule to be accepted ...",
)
@click.option(
    "--tries", type=click.IntRange(1, 100), default=3, show_default=True, help="... out of so many."
)
@click.option(
    "--confirm",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Play the smallest so many times in all.",
)
@budget_option("Begin no try after so long; the same command goes on.  [default: no end]")
@engine_option()
@into_option("Folder of the tries.  [default: shrink-RUN beside the run]")
@out_option()
@json_option("Print shrink.json, and nothing else.")
def shrink(
    run_dir: str,
    guarantee: str | None,
    sub_kind: str | None,
    out: Path,
    into: Path | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Find the smallest schedule that still shows what RUN (a folder, or `latest`) violated.

    Plays fewer faults, shorter ones, less load. Exit codes: 0 smallest found, 2 not (the time was
    up, the anomaly did not come again, or it comes without faults too).
    """
    from urteil.harness.shrink import NoAnomaly, Rule, anomaly_of
    from urteil.harness.shrink.session import Session
    from urteil.harness.verify.result import load_result

    folder = whole_run(run_dir, out, "result.json", "scenario.json", "run.json")
    _must_be_played(folder)
    budget = asked["budget"]
    try:
        session = Session(
            run_dir=folder,
            folder=(into or folder.parent / f"shrink-{folder.name}").resolve(),
            anomaly=anomaly_of(folder, load_result(folder), guarantee=guarantee, sub_kind=sub_kind),
            rule=Rule(hits=asked["hits"], tries=asked["tries"]),
            deadline=time.monotonic() + (float("inf") if budget is None else 60 * budget),
            confirm=asked["confirm"],
            engine=asked["engine"],
        )
    except (NoAnomaly, ValueError) as error:
        raise click.UsageError(str(error)) from None
    report = session.run(_told(as_json), _silent)
    if as_json:
        click.echo((session.folder / "shrink.json").read_text(), nl=False)
    else:
        _tell(session, report)
    return EXIT_CODES[report.ended]


def _must_be_played(folder: Path) -> None:
    """A usage error for a run of a cluster that no lab can make again."""
    from urteil.harness.scenario import load_scenario
    from urteil.harness.targets import parse_target
    from urteil.harness.targets.external import PREFIX

    target = load_scenario(folder).target
    try:
        if not target.startswith(PREFIX):
            parse_target(target)
    except ValueError as error:
        raise click.UsageError(f"{folder.name} cannot be played again: {error}") from None


def _silent(_line: str) -> None:
    """Each try's own log is the folder of its run."""


def _told(as_json: bool) -> Any:
    """A line a step, as it happens."""
    head = ("step", "faults", "fault s", "load s", "rec/s", "producers", "shown", "")
    click.echo(_COLUMNS.format(*head).rstrip(), err=as_json)

    def tell(step: Step) -> None:
        shown = f"{step.hits} of {step.tries}"
        said = "kept" if step.kept else ""
        if step.others:
            said += f"  (also: {', '.join(map(str, step.others))})"
        line = _COLUMNS.format(
            step.what[:44], step.faults, step.fault_s, round(step.load_s, 1),
            round(step.rate_records_per_s, 1), step.producers, shown, said,
        )  # fmt: skip
        click.echo(line.rstrip(), err=as_json)

    return tell


def _tell(session: Session, report: Report) -> None:
    from urteil.cli.schedule import lines_of
    from urteil.harness.bounds import at_least

    ends = {
        "smallest": f"the smallest schedule that shows {report.anomaly}",
        "budget": f"the time is up; the best so far that shows {report.anomaly} "
        "(the same command goes on)",
        "not reproduced": f"the schedule as it was did not show {report.anomaly} again",
        "control": "without any fault a promise is broken too: no schedule is to blame",
    }
    click.echo(f"\n{ends[report.ended]}:")
    for line in lines_of(report.schedule.faults):
        click.echo(line)
    if report.tries:
        least = at_least(report.hits, report.tries)
        click.echo(
            f"shown in {report.hits} of {report.tries} tries "
            f"(at least {least:.0%} with 95 % confidence)"
        )
    click.echo(f"again: {session.command()}")
    click.echo(f"tries: {session.folder}")
