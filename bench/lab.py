"""Both targets side by side, in one run on one machine: start, memory, throughput, latency.
Then both runtimes: what containers cost.

    python bench/lab.py [--target urteil --target kafka] [--records N] [--no-runtimes] [--json FILE]

Load comes from Apache Kafka's own ProducerPerformance and ConsumerPerformance, straight to the
brokers (no proxy between). Machines are noisy: compare the ratios within one run, never two runs.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
from load_tools import Load
from rich.console import Console
from rich.table import Table

from urteil.harness.cluster import Cluster
from urteil.harness.runtimes.containers.images import ensure_images
from urteil.harness.runtimes.containers.own_engine import running_engine
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget, Target, UrteilTarget

ROWS = {
    "ready_s": "start to ready (s), 3 brokers",
    "rss_idle_mb": "resident memory a broker, idle (MB)",
    "acks_all_per_s": "produce 1 KB, acks=all, 3 partitions x 3 replicas (records/s)",
    "acks_one_per_s": "produce 1 KB, acks=1, 3 partitions x 3 replicas (records/s)",
    "one_partition_per_s": "produce 1 KB, acks=1, 1 partition x 1 replica (records/s)",
    "consume_mb_per_s": "consume while fetching (MB/s)",
    "p50_ms": "median at 1,000 records/s of 100 bytes, acks=all (ms)",
    "p99_ms": "p99 at 1,000 records/s of 100 bytes, acks=all (ms)",
    "rss_loaded_mb": "resident memory a broker, after the load (MB)",
}
RUNTIMES = ("process", "docker")
RUNTIME_ROWS = {
    "ready_s": "start to ready (s), 3 brokers, the median of {trials}",
    "demo_s": "`urteil run demo --seed 1` (s)",
}


def run(load: Load, records: int, latency_s: int) -> dict[str, float]:
    """The figures of `ROWS` on a fresh cluster."""
    figures = {"ready_s": load.cluster.ready_s}
    load.settle()
    figures["rss_idle_mb"] = load.rss_mb()
    load.create("spread", 3, 3)
    load.create("single", 1, 1)
    load.produce("spread", acks="all", records=records // 10, size=1000)  # warm up
    for key, topic, acks in (
        ("acks_all_per_s", "spread", "all"),
        ("acks_one_per_s", "spread", "1"),
        ("one_partition_per_s", "single", "1"),
    ):
        produced = load.produce(topic, acks=acks, records=records, size=1000)
        figures[key] = produced.records_per_s
    figures["consume_mb_per_s"] = load.consume("single", records)
    paced = load.produce("spread", acks="all", records=1000 * latency_s, size=100, throughput=1000)
    figures |= {"p50_ms": paced.p50_ms, "p99_ms": paced.p99_ms}
    figures["rss_loaded_mb"] = load.rss_mb()
    return figures


def measure(target: Target, records: int, latency_s: int) -> dict[str, float]:
    """All figures of one target, on a fresh cluster."""
    with tempfile.TemporaryDirectory(prefix="urteil-bench-") as folder:
        with Cluster(ClusterSpec(), target, Path(folder)) as cluster:
            return run(Load(cluster), records, latency_s)


def measure_runtimes(trials: int) -> dict[str, dict[str, float]]:
    """Start and demo of our broker in both runtimes, alternating."""
    ready: dict[str, list[float]] = {runtime: [] for runtime in RUNTIMES}
    for _ in range(trials):
        for runtime in RUNTIMES:
            with tempfile.TemporaryDirectory(prefix="urteil-bench-") as folder:
                with Cluster(
                    ClusterSpec(), UrteilTarget(), Path(folder), runtime=runtime
                ) as cluster:
                    ready[runtime].append(cluster.ready_s)
    return {
        runtime: {"ready_s": statistics.median(ready[runtime]), "demo_s": demo_s(runtime)}
        for runtime in RUNTIMES
    }


def demo_s(runtime: str) -> float:
    """Seconds of `urteil run demo`, report included; it must PASS."""
    with tempfile.TemporaryDirectory(prefix="urteil-bench-") as folder:
        argv = [sys.executable, "-m", "urteil", "run", "demo", "--seed", "1"]
        argv += ["--runtime", runtime, "--out", folder]
        began = time.monotonic()
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode != 0:
            raise click.ClickException(f"the demo in {runtime} did not pass:\n{done.stdout}")
        return time.monotonic() - began


def runtimes_table(figures: dict[str, dict[str, float]], trials: int) -> Table:
    shown = Table("figure", *RUNTIMES, "docker - process")
    for key, title in RUNTIME_ROWS.items():
        process, container = (figures[runtime][key] for runtime in RUNTIMES)
        cells = [f"{process:.1f}", f"{container:.1f}", f"{container - process:+.1f}"]
        shown.add_row(title.format(trials=trials), *cells)
    return shown


def table(figures: dict[str, dict[str, float]]) -> Table:
    names = list(figures)
    shown = Table("figure", *names, *(["ratio"] if len(names) == 2 else []))
    for key, title in ROWS.items():
        cells = [f"{figures[name][key]:,.1f}" for name in names]
        if len(names) == 2:
            cells.append(f"{figures[names[0]][key] / max(figures[names[1]][key], 1e-9):.2f}")
        shown.add_row(title, *cells)
    return shown


@click.command()
@click.option(
    "--target", "targets", multiple=True, default=("urteil", "kafka"), help="May be given twice."
)
@click.option("--records", default=200_000, show_default=True, help="Records a throughput figure.")
@click.option("--latency-s", default=15, show_default=True, help="Seconds of paced load.")
@click.option("--runtimes/--no-runtimes", "both", default=True, help="Compare the runtimes too.")
@click.option("--trials", default=5, show_default=True, help="Starts of each runtime.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also write them here.")
def main(
    targets: tuple[str, ...],
    records: int,
    latency_s: int,
    both: bool,
    trials: int,
    json_file: Path | None,
) -> None:
    """Measure the targets in sequence, then the runtimes, and print the tables."""
    known: dict[str, Target] = {
        "urteil": UrteilTarget(),
        "kafka": KafkaTarget(jvm=("-Xms256m", "-Xmx512m")),
    }
    figures = {name: measure(known[name], records, latency_s) for name in targets}
    if figures:
        Console(width=130).print(table(figures))
    if both:
        with running_engine(click.echo) as engine:
            ensure_images(engine, ["broker", "zookeeper", "toxiproxy"], click.echo)
            figures |= measure_runtimes(trials)
        Console(width=130).print(runtimes_table(figures, trials))
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
