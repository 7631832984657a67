"""The time until three brokers are ready, and the time of an act on them: as processes, and over
hosts.

    python bench/hosts_start.py [--target kafka] [--rounds N] [--phases]

The hosts are network namespaces of this machine, and have all parts before the first measurement.
Rounds alternate; read the difference of the medians. `--phases` lists the calls for which the lab
waited.
"""

from __future__ import annotations

import functools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tests.harness.runtimes.hosts.namespaces import network_of_hosts
from urteil.harness.cluster import Cluster
from urteil.harness.runtimes.hosts.connection import HostConnection
from urteil.harness.runtimes.ssh import SshRuntime
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import parse_target

RUNTIMES = ("process", "ssh")
SHOWN_S = 0.05
ACTS = 10
PHASES = {
    HostConnection: ("open", "run", "probe", "start_agent", "call"),
    SshRuntime: ("_claim", "start"),
    Cluster: ("_argv", "_start_node", "_await_zookeepers", "_await_ready"),
}


def show_phases() -> None:
    """Print every call of PHASES that takes at least SHOWN_S, with its first arguments."""
    for owner, names in PHASES.items():
        for name in names:
            setattr(owner, name, timed(getattr(owner, name)))


def timed(act: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(act)
    def measured(*arguments: Any, **options: Any) -> Any:
        began = time.monotonic()
        try:
            return act(*arguments, **options)
        finally:
            if (took_s := time.monotonic() - began) >= SHOWN_S:
                words = [str(word)[:30].strip() for word in arguments[1:3]]
                click.echo(f"    at {began % 1000:7.2f}: {act.__qualname__} {words} {took_s:.2f} s")

    return measured


def measure(runtime: str, target: str, run_dir: Path, inventory: Path) -> tuple[float, float]:
    """Seconds until a new cluster is ready, and of a pause of a broker with its end."""
    hosts = str(inventory) if runtime == "ssh" else ""
    began = time.monotonic()
    cluster = Cluster(ClusterSpec(), parse_target(target), run_dir, runtime=runtime, hosts=hosts)
    try:
        cluster.start()
        ready_s = time.monotonic() - began
        return ready_s, statistics.median(measure_act(cluster) for _ in range(ACTS))
    finally:
        cluster.close()


def measure_act(cluster: Cluster) -> float:
    began = time.monotonic()
    cluster.runtime.pause("b2")
    cluster.runtime.resume("b2")
    return time.monotonic() - began


@click.command()
@click.option("--target", default="urteil", show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--phases", is_flag=True)
def main(target: str, rounds: int, phases: bool) -> None:
    with tempfile.TemporaryDirectory() as name, network_of_hosts(Path(name) / "hosts") as network:
        times: dict[str, list[tuple[float, float]]] = {runtime: [] for runtime in RUNTIMES}
        for at in range(rounds + 1):
            if phases and at == 1:
                show_phases()
            for runtime in RUNTIMES:
                run_dir = Path(name) / f"{runtime}-{at}"
                ready_s, act_s = measure(runtime, target, run_dir, network.inventory)
                if at:
                    times[runtime].append((ready_s, act_s))
                    click.echo(f"{runtime}: ready after {ready_s:.2f} s, an act {act_s:.3f} s")
        for what, number in (("ready after", 0), ("an act", 1)):
            process_s, ssh_s = (
                statistics.median(row[number] for row in times[r]) for r in RUNTIMES
            )
            click.echo(
                f"{target}, {what}: process {process_s:.3f} s, ssh {ssh_s:.3f} s, "
                f"{ssh_s - process_s:+.3f} s"
            )


if __name__ == "__main__":
    main()
