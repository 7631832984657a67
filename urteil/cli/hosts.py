"""`urteil hosts`: the machines of `--runtime ssh`."""

from __future__ import annotations

from pathlib import Path

import click

EXIT_UNUSABLE = 255


@click.group(short_help="Check the machines of --runtime ssh.")
def hosts() -> None:
    """The machines of `--runtime ssh`, which an inventory describes (docs/guide/hosts.md)."""


@hosts.command(short_help="Show what each host of an inventory has, and what it lacks.")
@click.argument("inventory", type=click.Path(dir_okay=False, path_type=Path))
def check(inventory: Path) -> int:
    """Look at each host of INVENTORY, a TOML file. Nothing is changed there.

    Exit codes: 0 when every host can be used, otherwise 255.
    """
    from urteil.harness.dependencies.installation import MissingDependency
    from urteil.harness.runtimes.hosts.host_check import check_hosts, describe_check
    from urteil.harness.runtimes.hosts.inventory import load_hosts

    try:
        checks = check_hosts(load_hosts(inventory))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except MissingDependency as error:
        raise click.ClickException(str(error)) from None
    for host_check in checks:
        host = host_check.host
        click.echo(f"{host.name}  {host.address}  {describe_check(host_check)}")
    problems = [problem for host_check in checks for problem in host_check.problems]
    for problem in problems:
        click.echo(problem, err=True)
    return EXIT_UNUSABLE if problems else 0


def require_hosts(inventory: Path, *, filter_packets: bool) -> None:
    """Raise ClickException with the first problem of the hosts. With `filter_packets` the
    hosts must support faults of packets, too."""
    from urteil.chaos.observations import LabFailure
    from urteil.harness.dependencies.installation import MissingDependency
    from urteil.harness.runtimes.hosts.host_check import check_hosts
    from urteil.harness.runtimes.hosts.inventory import load_hosts

    try:
        for check in check_hosts(load_hosts(inventory)):
            lacks = [check.facts.packet_filter_problem] if check.facts and filter_packets else []
            for problem in filter(None, [*check.problems, *lacks]):
                raise click.ClickException(problem)
    except (MissingDependency, LabFailure) as error:
        raise click.ClickException(f"--runtime ssh: {error}") from None
