"""`urteil tool NAME ARGS...`: Apache Kafka's command-line tools on a standing cluster."""

from __future__ import annotations

import os

import click

from urteil.chaos.similar_names import suggest
from urteil.cli.cluster import sole_cluster
from urteil.harness.kafka_tools import (
    NEW,
    RELEASES,
    TOOLS,
    Address,
    Tool,
    needs_cluster,
    tool_arguments,
    tool_name,
)

PASSED_ON = {"ignore_unknown_options": True, "help_option_names": []}


@click.command(
    context_settings=PASSED_ON, add_help_option=False, options_metavar="", short_help=(
        "Run one of Kafka's command-line tools on a standing cluster."
    ),
)  # fmt: skip
@click.option("--cluster", metavar="NAME", help="A standing cluster.  [default: the only one]")
@click.option("--release", type=click.Choice(RELEASES), default=NEW, show_default=True,
              help="The release of the tool; those of 2.8.0 write into ZooKeeper.")  # fmt: skip
@click.option("--as", "user", metavar="USER",
              help="The user of a cluster with users.  [default: admin]")  # fmt: skip
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[NAME [ARGUMENTS]...]")
@click.pass_context
def tool(
    context: click.Context, cluster: str | None, release: str, user: str | None,
    words: tuple[str, ...],
) -> None:  # fmt: skip
    """Run one of Kafka's command-line tools on a standing cluster.

    The cluster's address, and the client configuration of a cluster with users, are filled in
    where the arguments lack them: `urteil tool kafka-topics --list`. Without a name, the tools are
    listed. All other options are the tool's; its output and its exit code are passed through.
    """
    from urteil.harness.dependencies.installation import MissingDependency
    from urteil.harness.dependencies.java import utf8_locale
    from urteil.harness.dependencies.kafka import kafka_tool

    if not words:
        return click.echo(_list_of_tools())
    if words[0] in ("-h", "--help"):
        return click.echo(context.get_help())
    name, *args = words
    call = _known_tool(name).call(release)
    if call is None:
        releases = " and ".join(release for release in RELEASES if _known_tool(name).call(release))
        raise click.UsageError(f"Kafka {release} has no {name}; use --release {releases}")
    address = None
    if needs_cluster(call, args) or cluster is not None:
        address = _address(cluster, user)
    try:
        argv = kafka_tool(call.main_class, tool_arguments(call, args, address), version=release)
    except MissingDependency as error:
        raise click.ClickException(str(error)) from None
    # The tool replaces this process: standard streams, signals and the exit code are its own.
    os.execve(argv[0], argv, {**os.environ, **utf8_locale()})


def _list_of_tools() -> str:
    width = max(map(len, TOOLS))
    lines = [f"{name:<{width}}  {kafka_tool.purpose}" for name, kafka_tool in sorted(TOOLS.items())]
    return "\n".join(
        [*lines, "", "urteil tool NAME --help prints the options of a tool.",
         "urteil tool --help prints the options before them: --cluster, --release, --as."]
    )  # fmt: skip


def _known_tool(word: str) -> Tool:
    name = tool_name(word)
    if name in TOOLS:
        return TOOLS[name]
    raise click.UsageError(f"no tool named {name!r}; {suggest(name, sorted(TOOLS))}")


def _address(name: str | None, user: str | None) -> Address:
    """The address of the standing cluster, with the client configuration of the user."""
    from urteil.harness import standing

    if name is None:
        cluster = sole_cluster(standing.status_of_all(), "--cluster")
    else:
        try:
            cluster = standing.status(name)
        except standing.StandingError as error:
            raise click.UsageError(str(error)) from None
    users = {user.name: user for user in cluster.users}
    if user is not None and user not in users:
        raise click.UsageError(
            f"cluster {cluster.name} has no user {user!r}; it has {', '.join(users)}"
        )
    account = users[user] if user else cluster.users[0]
    return Address(
        bootstrap=cluster.bootstrap_servers,
        zookeeper=cluster.zookeeper,
        config=account.files["java"],
        is_secured=cluster.protocol != "PLAINTEXT",
    )
