"""`urteil cluster up|status|down`: clusters that run until they are taken down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from urteil.cli.options import (
    check_hosts,
    check_metadata_nodes,
    controllers_option,
    hosts_option,
    quorum_option,
)

if TYPE_CHECKING:
    from urteil.harness.scenario import Quorum
    from urteil.harness.standing import StandingCluster, StandingRequest

NONE_STANDS = "no cluster stands; urteil cluster up starts one"


@click.group()
def cluster() -> None:
    """Clusters for experiments and for other tools."""


_name = click.option("--name", default="default", show_default=True, help="Name of the cluster.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_export = click.option(
    "--export", "as_export", is_flag=True,
    help='Print shell lines: eval "$(urteil cluster up --export)" sets BOOTSTRAP, ZOOKEEPER ...',
)  # fmt: skip


@cluster.command()
@_name
@click.option("--brokers", type=click.IntRange(1, 9),
              help="Number of brokers.  [default: 3, or as many as the mix]")  # fmt: skip
@click.option("--zookeepers", type=click.IntRange(1, 5),
              help="Number of ZooKeeper servers.  [default: 1]")  # fmt: skip
@controllers_option("0")
@quorum_option("static")
@click.option("--target", help="Target: urteil, kafka[:VERSION] or mix:KIND,...  [default: urteil]")
@click.option(
    "--mix", metavar="KIND,...", help="One target for each broker: --mix kafka,urteil,urteil"
)
@click.option("--runtime", type=click.Choice(["process", "docker", "ssh"]), default="process",
              show_default=True, help="Where the nodes run.")  # fmt: skip
@hosts_option()
@click.option("--port", type=click.IntRange(1, 65_535), metavar="N",
              help="First of consecutive ports at 127.0.0.1: brokers, ZooKeepers, metrics.  "
                   "[default: free ports]")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="A setting of the brokers, as in server.properties; repeatable.")  # fmt: skip
@click.option("--first-broker-id", type=click.IntRange(0), default=1, show_default=True,
              help="Id of the first broker; the others follow.")  # fmt: skip
@click.option("--racks", metavar="A,B,...", help="Racks of the brokers, in turn.")
@click.option("--tls", is_flag=True, help="TLS for clients, with a certificate for each user.")
@click.option("--sasl", type=click.Choice(["scram", "plain"]), help="Authentication of clients.")
@click.option(
    "--acl", is_flag=True, help="ACLs: admin may do everything, bob nothing; needs --sasl or --tls."
)
@_json
@_export
def up(as_json: bool, as_export: bool, **arguments: Any) -> None:
    """Start a cluster; print its addresses, its settings and how to stop it.

    It also writes client configurations for Java, librdkafka and kafka-python
    (docs/guide/tools.md).
    """
    from urteil.harness import standing
    from urteil.harness.dependencies.installation import MissingDependency

    _check_output(as_json, as_export)
    try:
        cluster = standing.start(_request(**arguments))
    except standing.BadRequest as error:
        raise click.UsageError(str(error)) from None
    except (standing.StandingError, MissingDependency) as error:
        raise click.ClickException(str(error)) from None
    _show(cluster, as_json=as_json, as_export=as_export)


@cluster.command()
@click.option("--name", help="Name of a cluster.  [default: all]")
@_json
@_export
def status(name: str | None, as_json: bool, as_export: bool) -> None:
    """Print the standing clusters: nodes, addresses, and whether they run."""
    from urteil.harness import standing

    _check_output(as_json, as_export)
    try:
        if name is not None:
            cluster = _with_pids(standing.status(name))
            return _show(cluster, as_json=as_json, as_export=as_export)
        clusters = standing.status_of_all()
        if as_export:
            return _show(sole_cluster(clusters, "--name"), as_json=False, as_export=True)
        _show_all([_with_pids(cluster) for cluster in clusters], as_json=as_json)
    except standing.StandingError as error:
        raise click.UsageError(str(error)) from None


@cluster.command()
@_name
def down(name: str) -> None:
    """Stop the standing cluster and remove its data."""
    from urteil.harness import standing

    try:
        standing.stop_standing(name)
    except standing.StandingError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"cluster {name} is down")


def _request(
    *, brokers: int | None, zookeepers: int | None, controllers: int | None, quorum: Quorum | None,
    target: str | None, mix: str | None, racks: str | None, settings: tuple[str, ...],
    sasl: str | None, runtime: str, hosts: Path | None, **arguments: Any,
) -> StandingRequest:  # fmt: skip
    """The options as a request. Raises UsageError for invalid combinations."""
    from urteil.harness.scenario import STATIC
    from urteil.harness.standing import StandingRequest
    from urteil.harness.standing.settings import parse_settings
    from urteil.harness.targets import parse_target
    from urteil.harness.targets.mix import PREFIX, kinds_of, size_of

    if target and mix:
        raise click.UsageError(f"--mix says what each broker is: leave --target {target} out")
    target = f"{PREFIX}{mix}" if mix else target or "urteil"
    check_metadata_nodes(target, zookeepers=zookeepers, controllers=controllers, quorum=quorum)
    check_hosts(runtime, hosts, target=target, controllers=controllers or 0)
    brokers = brokers or size_of(target, 3)
    try:
        kinds_of(parse_target(target), brokers)
    except ValueError as error:
        raise click.UsageError(f"--target {target}: {error}") from None
    try:
        parsed = parse_settings(settings)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return StandingRequest(
        brokers=brokers,
        zookeepers=zookeepers or 1,
        controllers=controllers or 0,
        quorum=quorum or STATIC,
        target=target,
        settings=parsed,
        racks=() if racks is None else tuple(map(str.strip, racks.split(","))),
        sasl=sasl or "",
        runtime=runtime,
        hosts=str(hosts.resolve()) if hosts else "",
        **arguments,
    )


def _check_output(as_json: bool, as_export: bool) -> None:
    if as_json and as_export:
        raise click.UsageError("--json and --export are two forms of the same: choose one")


def _with_pids(cluster: StandingCluster) -> StandingCluster:
    """The cluster with the current process ids: faults may have ended processes."""
    import msgspec

    from urteil.harness import standing

    pids, dead = standing.faults_on(cluster.name).pids()
    return msgspec.structs.replace(cluster, pids=pids, dead=dead)


def sole_cluster(clusters: list[StandingCluster], option: str) -> StandingCluster:
    """The only standing cluster. Raises UsageError, which names `option`, without it."""
    if len(clusters) == 1:
        return clusters[0]
    if not clusters:
        raise click.UsageError(NONE_STANDS)
    names = ", ".join(cluster.name for cluster in clusters)
    raise click.UsageError(f"several clusters stand ({names}): choose one by {option}")


def _show(cluster: StandingCluster, *, as_json: bool, as_export: bool) -> None:
    from urteil.harness.standing import text

    if as_json:
        click.echo(json.dumps(text.as_json(cluster), indent=2))
    else:
        click.echo(text.as_shell_lines(cluster) if as_export else text.as_text(cluster))


def _show_all(clusters: list[StandingCluster], *, as_json: bool) -> None:
    from urteil.harness.standing import text

    if as_json:
        click.echo(json.dumps([text.as_json(cluster) for cluster in clusters], indent=2))
    else:
        click.echo("\n\n".join(map(text.as_text, clusters)) or NONE_STANDS)
