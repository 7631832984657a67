"""`urteil engine start|stop|status`: a container engine of the lab's own."""

from __future__ import annotations

import click


@click.group()
def engine() -> None:
    """A container engine of the lab's own, where none runs."""


@engine.command(short_help="Start an engine that runs until it is stopped.")
def start() -> None:
    """Start an engine that runs until `urteil engine stop`: eval $(urteil engine start)."""
    from urteil.harness.dependencies.installation import MissingDependency
    from urteil.harness.runtimes.containers import standing_engine

    try:
        engine = standing_engine.start(print_progress)
    except MissingDependency as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"export DOCKER_HOST={engine.url}")


@engine.command(short_help="Stop the engine; remove its containers and networks.")
def stop() -> None:
    """Stop the engine and remove its containers and networks; its images are kept."""
    from urteil.harness.runtimes.containers import standing_engine

    if not standing_engine.stop():
        raise click.UsageError("no engine of the lab's own stands; urteil engine start starts one")
    click.echo("the engine is stopped")


@engine.command(short_help="Show the engine that the lab uses.")
def status() -> None:
    """Print the engine that the lab uses, and the lab's own one if it runs."""
    from urteil.harness.runtimes.containers import standing_engine
    from urteil.harness.runtimes.containers.engine import describe_engine

    part = describe_engine()
    click.echo(
        f"in use     {part.version} at {part.where}" if part.found else f"none       {part.how}"
    )
    if own_engine := standing_engine.find():
        click.echo(f"own        {own_engine.url} (keeper {own_engine.keeper})")
        click.echo(f"data       {own_engine.data}")
        click.echo(f"log        {own_engine.log}")
        click.echo(f"use it     export DOCKER_HOST={own_engine.url}")


def print_progress(line: str) -> None:
    """Print progress on stderr, since stdout may be evaluated or piped."""
    click.echo(line, err=True)
