"""Arguments and options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from urteil.cli import completion
from urteil.harness.verify.engines.choice import AUTO, CHOICES

Decorator = Callable[[Any], Any]


class Number(click.FloatRange):
    """A range of floats that rejects `nan`."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number", param, ctx)
        return number


SEED = click.IntRange(0, (1 << 63) - 1)
"""A seed: what a column of whole numbers can hold."""


def run_argument(
    name: str = "run_dir", *, metavar: str = "RUN", required: bool = True
) -> Decorator:
    """A run: a folder, a name below --out, or `latest`."""
    return click.argument(name, metavar=metavar, required=required, shell_complete=completion.runs)


def controllers_option(default: str = "the scenario's") -> Decorator:
    """The number of controllers that are nodes of their own in KRaft's quorum: odd, or 0 for
    combined nodes."""
    return click.option(
        "--controllers", type=click.Choice(("0", "1", "3", "5")), callback=_to_number,
        help="Number of KRaft controllers with nodes of their own; with 0 the brokers are the "
        f"controllers.  [default: {default}]",
    )  # fmt: skip


def quorum_option(default: str = "the scenario's") -> Decorator:
    """Whether the voters of KRaft's quorum can change."""
    return click.option(
        "--quorum", type=click.Choice(("static", "dynamic")),
        help="Whether KRaft's voters are fixed, or stand in the metadata log and may change "
        f"(KIP-853).  [default: {default}]",
    )  # fmt: skip


def master_option(about: str) -> Decorator:
    return click.option("--master", metavar="URL", help=about, callback=_must_have_spark)


def _must_have_spark(_context: Any, _param: Any, master: str | None) -> str | None:
    """Reject --master without PySpark before a run begins."""
    from urteil.harness.dependencies.pyspark import require_pyspark

    if master is not None:
        require_pyspark()
    return master


def _to_number(_context: Any, _param: Any, value: str | None) -> int | None:
    return None if value is None else int(value)


def check_metadata_nodes(
    target: str, *, zookeepers: int | None, controllers: int | None, quorum: str | None
) -> None:
    """Raise UsageError for nodes and properties of a metadata plane that the target does not
    have."""
    from urteil.chaos.faults.base.fault import EXTERNAL, KRAFT, target_kind

    kind = target_kind(target)
    if zookeepers is not None and kind == KRAFT:
        raise click.UsageError(
            f"--zookeepers: --target {target} has no ZooKeeper: --controllers N gives KRaft's "
            "quorum nodes of its own, and without it the brokers are the controllers"
        )
    if controllers is not None and kind not in (KRAFT, EXTERNAL):
        raise click.UsageError(
            f"--controllers: --target {target} has ZooKeeper and no quorum of KRaft: use "
            "--zookeepers N, or --target kafka:4.4.0"
        )
    if quorum is not None and kind not in (KRAFT, EXTERNAL):
        raise click.UsageError(
            f"--quorum: --target {target} has ZooKeeper and no quorum of KRaft: take "
            "--target kafka:4.4.0"
        )


def hosts_option() -> Decorator:
    return click.option(
        "--hosts", type=click.Path(dir_okay=False, path_type=Path),
        help="With --runtime ssh: the inventory of its hosts (docs/guide/hosts.md).",
    )  # fmt: skip


def check_hosts(
    runtime: str | None,
    hosts: Path | None,
    client_hosts: Sequence[str] = (),
    *,
    target: str,
    controllers: int,
) -> None:
    """Raise UsageError for --runtime ssh without a valid inventory, or another one with it, for
    nodes of the target that no host may run, and for hosts of clients that the inventory lacks."""
    from urteil.chaos.faults.base.fault import KRAFT, target_kind
    from urteil.harness.runtimes.hosts.inventory import (
        BROKER,
        CONTROLLER,
        ZOOKEEPER,
        check_roles,
        find_hosts,
        load_hosts,
    )

    if client_hosts and hosts is None:
        raise click.UsageError("--client-hosts names hosts of --hosts hosts.toml: add that")

    if (hosts is not None) != (runtime == "ssh"):
        raise click.UsageError(
            "--runtime ssh and --hosts hosts.toml go together (docs/guide/hosts.md)"
        )
    if hosts is None:
        return
    metadata = ZOOKEEPER if target_kind(target) != KRAFT else CONTROLLER if controllers else BROKER
    try:
        loaded = load_hosts(hosts)
        check_roles(loaded, (BROKER, metadata))
    except ValueError as error:
        raise click.UsageError(f"--hosts {error}") from None
    try:
        find_hosts(loaded, client_hosts)
    except ValueError as error:
        raise click.UsageError(f"--client-hosts: {error}") from None


def out_option(help_text: str = "The folder of all runs.") -> Decorator:
    return click.option(
        "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("runs"),
        help=f"{help_text}  [default: runs]",
    )  # fmt: skip


def into_option(help_text: str) -> Decorator:
    return click.option("--into", type=click.Path(file_okay=False, path_type=Path), help=help_text)


def engine_option() -> Decorator:
    return click.option(
        "--engine", type=click.Choice(CHOICES), default=AUTO, show_default=True,
        help="The engine that judges; auto chooses Spark for large runs (docs/guide/spark.md).",
        callback=_check_engine,
    )  # fmt: skip


def _check_engine(_context: Any, _param: Any, engine: str) -> str:
    """Reject a missing PySpark or a wrong URTEIL_JUDGE_LIMIT_S before a run begins."""
    from urteil.harness.dependencies.pyspark import require_pyspark
    from urteil.harness.verify.watchdog import configured_limit_s

    if engine == "spark":
        require_pyspark()
    try:
        configured_limit_s()
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    return engine


def budget_option(help_text: str) -> Decorator:
    return click.option("--budget", type=Number(0, 100_000), metavar="MINUTES", help=help_text)


def json_option(help_text: str) -> Decorator:
    return click.option("--json", "as_json", is_flag=True, help=help_text)


def summary_option(what: str) -> Decorator:
    return click.option(
        "--summary", type=click.Path(dir_okay=False, path_type=Path),
        help=f"Append {what} in Markdown to this file, for example $GITHUB_STEP_SUMMARY.",
    )  # fmt: skip
