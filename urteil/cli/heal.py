"""`urteil heal`: heal all faults of a run, a standing cluster or an external one."""

from __future__ import annotations

from pathlib import Path

import click

from urteil.cli.options import out_option, run_argument

DEADLINE_S = 120.0


@click.command(short_help="Heal all faults now.")
@run_argument("run", metavar="[RUN]", required=False)
@click.option("--cluster", metavar="NAME", help="A standing cluster.")
@click.option("--target", metavar="external:FILE.toml", help="An external cluster.")
@out_option()
def heal(run: str | None, cluster: str | None, target: str | None, out: Path) -> None:
    """Heal all faults of RUN (a folder, or `latest`), a standing or an external cluster.

    A run that is being played continues without faults. A cluster of the lab's own ends with its
    lab; on an external cluster links are healed, paused nodes resumed and dead nodes started.
    """
    if sum(option is not None for option in (run, cluster, target)) != 1:
        raise click.UsageError(
            "name what to heal: RUN, --cluster NAME or --target external:FILE.toml"
        )
    if cluster is not None:
        _heal_standing(cluster)
    elif target is not None:
        _external(target)
    else:
        _run(str(run), out)


def _heal_standing(name: str) -> None:
    from urteil.harness import standing

    try:
        session = standing.faults_on(name)
    except standing.StandingError as error:
        raise click.UsageError(str(error)) from None
    for line in session.heal_all():
        click.echo(line)


def _external(target: str) -> None:
    from urteil.harness.cluster.guard_process import GuardProcess
    from urteil.harness.targets.external import PREFIX

    if not target.startswith(PREFIX):
        raise click.UsageError(f"--target {target}: only {PREFIX}FILE.toml outlives its run")
    try:
        healer = GuardProcess(Path(target.removeprefix(PREFIX)), click.echo)
    except ValueError as error:
        raise click.UsageError(f"--target {target}: {error}") from None
    healer.heal_all()


def _run(name: str, out: Path) -> None:
    from urteil.cli.run_lookup import find_run, readable_run
    from urteil.harness.run.heal_request import is_being_played, request_healing
    from urteil.harness.scenario import load_scenario
    from urteil.harness.targets.external import PREFIX

    folder = find_run(name, out)
    if is_being_played(folder):
        try:
            why_not = request_healing(folder, deadline_s=DEADLINE_S)
        except TimeoutError as error:
            raise click.ClickException(str(error)) from None
        if why_not:
            raise click.ClickException(why_not)
        click.echo(f"everything in {folder.name} is healed; the run continues without faults")
    elif (target := load_scenario(readable_run(name, out, "scenario.json")).target).startswith(
        PREFIX
    ):
        _external(target)
    else:
        click.echo(f"no lab plays {folder.name}: its cluster ended with it, nothing is left")
