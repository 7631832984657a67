"""`urteil cluster up|status|down`: a cluster that stands until it is taken down."""

from __future__ import annotations

from typing import Any

import click


@click.group()
def cluster() -> None:
    """A cluster to play with."""


_name = click.option("--name", default="default", show_default=True, help="Several may stand.")


@cluster.command()
@_name
@click.option("--brokers", type=click.IntRange(1, 9), default=3, show_default=True)
@click.option("--zookeepers", type=click.IntRange(1, 5), default=1, show_default=True)
@click.option("--target", default="urteil", show_default=True, help="urteil or kafka[:VERSION]")
@click.option("--runtime", type=click.Choice(["process", "docker"]), default="process")
def up(name: str, target: str, **asked: Any) -> None:
    """Start a cluster, print its bootstrap address and how to stop it."""
    from urteil.harness import standing
    from urteil.harness.targets import parse_target

    try:
        parse_target(target)
    except ValueError as error:
        raise click.UsageError(f"--target {target}: {error}") from None
    try:
        info = standing.up(name=name, target=target, **asked)
    except standing.StandingError as error:
        raise click.ClickException(str(error)) from None
    click.echo(str(info))


@cluster.command()
@_name
def status(name: str) -> None:
    """Print the standing cluster: nodes, addresses, whether they live."""
    from urteil.harness import standing

    try:
        click.echo(str(standing.status(name)))
    except standing.StandingError as error:
        raise click.UsageError(str(error)) from None


@cluster.command()
@_name
def down(name: str) -> None:
    """Stop the standing cluster and remove its data."""
    from urteil.harness import standing

    try:
        standing.down(name)
    except standing.StandingError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"cluster {name} is down")
