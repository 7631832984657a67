"""`urteil images build|list`: the images of nodes in containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from urteil.cli.engine import print_progress

if TYPE_CHECKING:
    from urteil.harness.runtimes.containers.engine import Engine

DEFAULT = ("broker", "zookeeper", "toxiproxy")


@click.group()
def images() -> None:
    """Images of brokers, ZooKeepers and Toxiproxies."""


@images.command()
@click.argument("names", nargs=-1)
@click.option(
    "--base", metavar="IMAGE", help="Debian 12 image to build on.  [default: the one found]"
)
def build(names: tuple[str, ...], base: str | None) -> None:
    """Build images that are missing or out of date.

    NAMES are broker, zookeeper, toxiproxy (these three by default), kafka or kafka:VERSION.
    """
    from urteil.harness.dependencies.installation import MissingDependency
    from urteil.harness.runtimes.containers.image_recipes import recipe
    from urteil.harness.runtimes.containers.images import ensure_images

    try:
        for name in names:
            recipe(name)
        references = ensure_images(_engine(), names or DEFAULT, print_progress, base=base)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    except MissingDependency as error:
        raise click.ClickException(str(error)) from None
    for name, reference in references.items():
        click.echo(f"{name:<12} {reference}")


@images.command("list")
def list_images() -> None:
    """Print every image: current, out of date or missing, and its size."""
    from urteil.harness.dependencies.installation import MissingDependency
    from urteil.harness.runtimes.containers.images import image_states

    try:
        states = image_states(_engine())
    except MissingDependency as error:
        raise click.ClickException(str(error)) from None
    for state in states:
        size = f"{state.size_bytes / 1e6:,.0f} MB" if state.size_bytes else ""
        click.echo(f"{state.name:<12} {state.state:<12} {size:>8}  {state.reference}".rstrip())


def _engine() -> Engine:
    from urteil.harness.dependencies.installation import MissingDependency
    from urteil.harness.runtimes.containers.engine import connect

    try:
        return connect()
    except MissingDependency as error:
        raise click.ClickException(str(error)) from None
