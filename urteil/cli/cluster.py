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
@click.option("--brokers", type=click.IntRange(1, 9), help="[default: 3, or as many as the mix]")
@click.option("--zookeepers", type=click.IntRange(1, 5), default=1, show_default=True)
@click.option("--target", help="urteil, kafka[:VERSION] or mix:KIND,...  [default: urteil]")
@click.option("--mix", metavar="KIND,...", help="A target a broker: --mix kafka,urteil,urteil")
@click.option("--runtime", type=click.Choice(["process", "docker"]), default="process",
              show_default=True)  # fmt: skip
def up(name: str, brokers: int | None, target: str | None, mix: str | None, **asked: Any) -> None:
    """Start a cluster, print its bootstrap address and how to stop it."""
    from urteil.harness import standing
    from urteil.harness.targets import parse_target
    from urteil.harness.targets.mix import PREFIX, kinds_of, size_of

    if target and mix:
        raise click.UsageError(f"--mix says what each broker is: leave --target {target} out")
    target = f"{PREFIX}{mix}" if mix else target or "urteil"
    brokers = brokers or size_of(target, 3)
    try:
        kinds_of(parse_target(target), brokers)
    except ValueError as error:
        raise click.UsageError(f"--target {target}: {error}") from None
    try:
        info = standing.up(name=name, brokers=brokers, target=target, **asked)
    except standing.StandingError as error:
        kind = click.ClickException if standing.NAME.fullmatch(name) else click.UsageError
        raise kind(str(error)) from None
    click.echo(str(info))


@cluster.command()
@_name
def status(name: str) -> None:
    """Print the standing cluster: nodes, addresses, whether they live."""
    import msgspec

    from urteil.harness import standing

    try:
        found, keeper = standing.status(name), standing.faults_on(name)
    except standing.StandingError as error:
        raise click.UsageError(str(error)) from None
    click.echo(str(msgspec.structs.replace(found, pids=keeper.pids())))


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
