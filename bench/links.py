"""What links that read Kafka's frames cost, compared with plain Toxiproxy 2.12.

    python bench/links.py [--records N] [--rounds N] [--json FILE]

One broker of Apache Kafka; its clients' Toxiproxy is replaced between the measurements: the plain
server, the lab's without rules, and the lab's with a rule for another API. The load is Apache
Kafka's ProducerPerformance. Rounds alternate; read the ratios of the medians.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

import click
import psutil
from load_tools import Load
from rich.console import Console
from rich.table import Table

from urteil.chaos.link_rules import ANSWER, LinkRule
from urteil.chaos.observations import CLIENT
from urteil.harness.cluster import Cluster
from urteil.harness.dependencies.toxiproxy import plain_toxiproxy_binary
from urteil.harness.runtimes.process import MachinePrograms
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget

PLAIN, READING, RULED = "plain Toxiproxy", "without rules", "rule for another API"
ROWS = {
    "records_per_s": "produce 1 KB, acks=1 (records/s)",
    "p99_ms": "p99 at 1,000 records/s of 100 bytes (ms)",
    "rss_mb": "resident memory of the proxy, after the load (MB)",
}
PACED_S = 10


class Plain(MachinePrograms):
    def toxiproxy(self) -> str:
        return str(plain_toxiproxy_binary())


def replace_proxy(cluster: Cluster, variant: str) -> None:
    """Replace the clients' Toxiproxy by a variant."""
    links = cluster.controls().net
    links.heal_all()
    cluster.runtime.programs = Plain() if variant == PLAIN else MachinePrograms()
    cluster.links.restart(CLIENT)
    if variant == RULED:
        other = LinkRule(direction=ANSWER, act="drop", api="EndTxn")
        links.add_rule([link for link in links.links() if link.src == CLIENT], other, owner="bench")


def measure(cluster: Cluster, load: Load, variant: str, records: int) -> dict[str, float]:
    replace_proxy(cluster, variant)
    load.produce("t", acks="1", records=records // 10, size=1000)  # warm up
    fast = load.produce("t", acks="1", records=records, size=1000)
    paced = load.produce("t", acks="1", records=1000 * PACED_S, size=100, throughput=1000)
    pid = cluster.runtime.status(f"toxiproxy-{CLIENT}").pid
    rss_mb = psutil.Process(pid).memory_info().rss / 1e6
    return {"records_per_s": fast.records_per_s, "p99_ms": paced.p99_ms, "rss_mb": rss_mb}


@click.command()
@click.option("--records", default=500_000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the figures.")
def main(records: int, rounds: int, file: Path | None) -> None:
    """Compare the three kinds of links."""
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory(prefix="urteil-bench-") as folder:
        with Cluster(ClusterSpec(brokers=1), KafkaTarget(), Path(folder)) as cluster:
            load = Load(cluster)
            load.bootstrap = cluster.bootstrap[0]
            load.create("t", 1, 1)
            for _ in range(rounds):
                for variant in (PLAIN, READING, RULED):
                    for name, value in measure(cluster, load, variant, records).items():
                        figures[variant][name].append(value)
            replace_proxy(cluster, READING)
    shown = Table("figure", *(f"{variant}{end}" for variant in figures for end in ("", ": ratio")))
    for name, title in ROWS.items():
        cells = []
        plain = statistics.median(figures[PLAIN][name])
        for variant in figures:
            median = statistics.median(figures[variant][name])
            cells += [f"{median:,.1f}", f"{median / plain:.2f}"]
        shown.add_row(title, *cells)
    Console(width=160).print(shown)
    if file:
        file.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
