"""The broker compared with Apache Kafka: same tools, same machine, targets alternating.

    python bench/broker.py [--group NAME ...] [--scale X] [--json FILE]

Every figure is measured on both targets right after each other. Machines are noisy: read the
ratios within one run, never compare two runs.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import cleaner_throughput
import click
import encryption
import group_coordinator
import lab
import many_partitions
import record_sizes
import recovery
import transactions
from load_tools import Load
from rich.console import Console
from rich.table import Table

from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget, Target, UrteilTarget

GOAL = 1.2
MEMORY_GOAL = 5.0
THREE_BROKERS = ClusterSpec()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Figures of one cluster. `measure(load, scale)` returns a value for each key of `rows`."""

    rows: dict[str, str]
    measure: Callable[[Load, float], dict[str, float]]
    spec: ClusterSpec = THREE_BROKERS
    prepared: Callable[[ClusterSpec], AbstractContextManager[ClusterSpec]] = nullcontext


GROUPS = {
    "lab": Group(
        rows=lab.ROWS, measure=lambda load, scale: lab.run(load, int(200_000 * scale), 15)
    ),
    "records": Group(rows=record_sizes.ROWS, measure=record_sizes.measure),
    "partitions": Group(rows=many_partitions.ROWS, measure=many_partitions.measure),
    "cleaner": Group(
        rows=cleaner_throughput.ROWS,
        measure=cleaner_throughput.measure,
        spec=cleaner_throughput.SPEC,
    ),
    "recovery": Group(rows=recovery.ROWS, measure=recovery.measure, spec=recovery.SPEC),
    "transactions": Group(rows=transactions.ROWS, measure=transactions.measure),
    "groups": Group(
        rows=group_coordinator.ROWS, measure=group_coordinator.measure, spec=group_coordinator.SPEC
    ),
    "tls": Group(
        rows=encryption.rows("tls", "TLS"),
        measure=encryption.measure_tls,
        spec=encryption.TLS,
        prepared=encryption.with_keys,
    ),
    "scram": Group(
        rows=encryption.rows("scram", "SCRAM"),
        measure=encryption.measure_scram,
        spec=encryption.SCRAM,
    ),
}


def targets() -> list[Target]:
    return [UrteilTarget(), KafkaTarget(jvm=("-Xms256m", "-Xmx512m"))]


def measure(group: Group, target: Target, scale: float) -> dict[str, float]:
    """The group's figures of one target, on a fresh cluster."""
    with tempfile.TemporaryDirectory(prefix="urteil-bench-") as folder:
        with group.prepared(group.spec) as spec, Cluster(spec, target, Path(folder)) as cluster:
            return group.measure(Load(cluster), scale)


def times_as_good(key: str, ours: float, theirs: float) -> float:
    """How many times as good our broker is: faster or smaller; above 1 is better."""
    is_rate = key.endswith("per_s")
    return ours / max(theirs, 1e-9) if is_rate else theirs / max(ours, 1e-9)


def goal(key: str) -> float:
    return MEMORY_GOAL if key.startswith("rss_") else GOAL


def table(figures: dict[str, dict[str, dict[str, float]]]) -> Table:
    shown = Table("figure", "urteil", "kafka", "times as good", "goal")
    for name, by_target in figures.items():
        ours, theirs = by_target.values()
        for key, title in GROUPS[name].rows.items():
            ratio = times_as_good(key, ours[key], theirs[key])
            least_ratio = goal(key)
            shown.add_row(
                title,
                f"{ours[key]:,.1f}",
                f"{theirs[key]:,.1f}",
                f"{ratio:.2f}",
                f"{least_ratio:g}" if ratio >= least_ratio else f"{least_ratio:g} MISSED",
            )
    return shown


@click.command()
@click.option(
    "--group",
    "groups",
    multiple=True,
    type=click.Choice(list(GROUPS)),
    default=list(GROUPS),
    help="May be given more than once; all without it.",
)
@click.option("--scale", default=1.0, show_default=True, help="Times the usual number of records.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also write them here.")
def main(groups: tuple[str, ...], scale: float, json_file: Path | None) -> None:
    """Measure group by group, the targets alternating, and print one table."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for name in groups:
        figures[name] = {}
        for target in targets():
            click.echo(f"{name}: {target.name}", err=True)
            figures[name][target.name] = measure(GROUPS[name], target, scale)
    Console(width=130).print(table(figures))
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
