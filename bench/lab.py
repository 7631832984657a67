"""Both targets side by side, in one run on one machine: start, memory, throughput, latency.
Then both runtimes: what containers cost.

    python bench/lab.py [--target urteil --target kafka] [--records N] [--no-runtimes] [--json FILE]

Load comes from Apache Kafka's own ProducerPerformance and ConsumerPerformance, straight to the
brokers (no proxy between). Machines are noisy: compare the ratios within one run, never two runs.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import psutil
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from rich.console import Console
from rich.table import Table

from urteil.harness.cluster import Cluster
from urteil.harness.containers.images import ensure_images
from urteil.harness.containers.own_engine import running_engine
from urteil.harness.parts import kafka_tool
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget, Target, UrteilTarget

PERFORMANCE_JVM = ("-Xmx512m", "-XX:+UseG1GC")
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
PRODUCED = re.compile(
    r"([\d.]+) records/sec.*?([\d.]+) ms avg latency.*?(\d+) ms 50th.*?(\d+) ms 99th", re.S
)


@dataclass(frozen=True, slots=True)
class Produced:
    """The last line of ProducerPerformance."""

    records_per_s: float
    p50_ms: float
    p99_ms: float


class Bench:
    """One target's cluster, and the questions asked of it."""

    def __init__(self, cluster: Cluster, records: int, latency_s: int) -> None:
        self.cluster = cluster
        self.records = records
        self.latency_s = latency_s
        plan = cluster.plan
        self.bootstrap = f"{plan.address('b1')}:{plan.ports.internal}"
        self.hosts = cluster.run_dir / "hosts.direct"
        self.hosts.write_text("".join(f"{plan.address(b)} {b}\n" for b in plan.brokers))

    def create(self, name: str, partitions: int, replicas: int) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap)
        admin.create_topics([NewTopic(name, partitions, replicas)])
        admin.close()
        self.cluster.await_healthy(deadline_s=30)

    def rss_mb(self) -> float:
        """Mean resident memory of a broker and its children, in MB."""
        total = 0
        for node in self.cluster.plan.brokers:
            pid = self.cluster.runtime.status(node).pid
            process = psutil.Process(pid)
            family = [process, *process.children(recursive=True)]
            total += sum(one.memory_info().rss for one in family)
        return total / len(self.cluster.plan.brokers) / 1e6

    def tool(self, main: str, arguments: Sequence[str]) -> str:
        java, *rest = kafka_tool(f"org.apache.kafka.tools.{main}", arguments)
        options = [one for one in rest if not one.startswith("-X")]
        argv = [java, *PERFORMANCE_JVM, f"-Djdk.net.hosts.file={self.hosts}", *options]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise click.ClickException(f"{main} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def produce(
        self, topic: str, *, acks: str, records: int, size: int, throughput: int = -1
    ) -> Produced:
        output = self.tool(
            "ProducerPerformance",
            ["--topic", topic, "--num-records", str(records), "--record-size", str(size),
             "--throughput", str(throughput), "--producer-props",
             f"bootstrap.servers={self.bootstrap}", f"acks={acks}"],
        )  # fmt: skip
        matches = PRODUCED.findall(output.strip().splitlines()[-1])
        if not matches:
            raise click.ClickException(f"ProducerPerformance said:\n{output}")
        rate, _, p50, p99 = matches[-1]
        return Produced(float(rate), float(p50), float(p99))

    def consume(self, topic: str, records: int) -> float:
        """MB/s while fetching (the last column but one of ConsumerPerformance)."""
        output = self.tool(
            "ConsumerPerformance",
            ["--bootstrap-server", self.bootstrap, "--topic", topic,
             "--messages", str(records), "--timeout", "60000"],
        )  # fmt: skip
        return float(output.strip().splitlines()[-1].split(",")[-2])

    def run(self) -> dict[str, float]:
        figures = {"ready_s": self.cluster.ready_s}
        time.sleep(2)  # idle memory is measured at rest, not while starting
        figures["rss_idle_mb"] = self.rss_mb()
        self.create("spread", 3, 3)
        self.create("single", 1, 1)
        self.produce("spread", acks="all", records=self.records // 10, size=1000)  # warm up
        spread = {"size": 1000, "records": self.records}
        figures["acks_all_per_s"] = self.produce("spread", acks="all", **spread).records_per_s
        figures["acks_one_per_s"] = self.produce("spread", acks="1", **spread).records_per_s
        figures["one_partition_per_s"] = self.produce("single", acks="1", **spread).records_per_s
        figures["consume_mb_per_s"] = self.consume("single", self.records)
        paced = self.produce(
            "spread", acks="all", records=1000 * self.latency_s, size=100, throughput=1000
        )
        figures |= {"p50_ms": paced.p50_ms, "p99_ms": paced.p99_ms}
        figures["rss_loaded_mb"] = self.rss_mb()
        return figures


def measure(target: Target, records: int, latency_s: int) -> dict[str, float]:
    """All figures of one target, on a fresh cluster."""
    with tempfile.TemporaryDirectory(prefix="urteil-bench-") as folder:
        with Cluster(ClusterSpec(), target, Path(folder)) as cluster:
            return Bench(cluster, records, latency_s).run()


def measure_runtimes(trials: int) -> dict[str, dict[str, float]]:
    """Start and demo of our broker in both runtimes, turn about."""
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
    """Measure the targets one after the other, then the runtimes, and print the tables."""
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
