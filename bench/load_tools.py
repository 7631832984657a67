"""One target's cluster under load from Apache Kafka's own tools, straight to the brokers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click
import psutil
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from urteil.chaos.waiting import until
from urteil.harness.cluster import Cluster
from urteil.harness.dependencies.kafka import kafka_tool

PERFORMANCE_JVM = ("-Xmx512m", "-XX:+UseG1GC")
TOOL_DEADLINE_S = 300
HEALTHY_DEADLINE_S = 60
REST_DEADLINE_S = 20
REST_WINDOW_S = 0.5
REST_SHARE = 0.1
PRODUCED = re.compile(
    r"([\d.]+) records/sec.*?([\d.]+) ms avg latency.*?(\d+) ms 50th.*?(\d+) ms 99th", re.S
)


@dataclass(frozen=True, slots=True)
class Produced:
    """The last line of ProducerPerformance."""

    records_per_s: float
    p50_ms: float
    p99_ms: float


class Load:
    """The tools, without proxies, and the brokers' use of resources meanwhile."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client: Mapping[str, str] = {}  # client settings, for clusters with security
        plan = cluster.plan
        self.bootstrap = f"{plan.address('b1')}:{plan.ports.internal}"
        self.hosts = cluster.run_dir / "hosts.direct"
        self.hosts.write_text("".join(f"{plan.address(b)} {b}\n" for b in plan.brokers))

    def create(
        self, name: str, partitions: int, replicas: int, config: Mapping[str, str] | None = None
    ) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap)
        admin.create_topics([NewTopic(name, partitions, replicas, topic_configs=config or {})])
        admin.close()
        self.cluster.await_healthy(deadline_s=HEALTHY_DEADLINE_S)

    def rss_mb(self) -> float:
        """Mean resident memory of a broker that runs and its children, in MB."""
        sizes = []
        for node in self.cluster.plan.brokers:
            if self.cluster.runtime.is_alive(node):
                process = psutil.Process(self.cluster.runtime.status(node).pid)
                family = [process, *process.children(recursive=True)]
                sizes.append(sum(process.memory_info().rss for process in family))
        return sum(sizes) / len(sizes) / 1e6

    def settle(self) -> None:
        """Return when all brokers have been nearly idle for half a second."""
        pids = [self.cluster.runtime.status(node).pid for node in self.cluster.plan.brokers]
        processes = [psutil.Process(pid) for pid in pids]

        def are_idle() -> bool:
            before = [sum(process.cpu_times()[:2]) for process in processes]
            psutil.cpu_percent(interval=REST_WINDOW_S)
            after = [sum(process.cpu_times()[:2]) for process in processes]
            return sum(after) - sum(before) < REST_SHARE * REST_WINDOW_S * len(processes)

        until(are_idle, deadline_s=REST_DEADLINE_S, poll_s=0.0)

    def tool(self, main: str, arguments: Sequence[str]) -> str:
        java, *rest = kafka_tool(f"org.apache.kafka.tools.{main}", arguments)
        options = [option for option in rest if not option.startswith("-X")]
        argv = [java, *PERFORMANCE_JVM, f"-Djdk.net.hosts.file={self.hosts}", *options]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TOOL_DEADLINE_S)
        if done.returncode != 0:
            raise click.ClickException(f"{main} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _client_file(self, option: str, **more: str) -> list[str]:
        file = self.cluster.run_dir / "client.properties"
        settings = {
            **self.client,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return [option, str(file)]

    def produce(
        self,
        topic: str,
        *,
        acks: str,
        records: int,
        size: int,
        throughput: int = -1,
        compression: str = "none",
    ) -> Produced:
        output = self.tool(
            "ProducerPerformance",
            ["--topic", topic, "--num-records", str(records), "--record-size", str(size),
             "--throughput", str(throughput), *self._client_file("--producer.config"),
             "--producer-props",
             f"bootstrap.servers={self.bootstrap}", f"acks={acks}",
             f"compression.type={compression}"],
        )  # fmt: skip
        matches = PRODUCED.findall(output.strip().splitlines()[-1])
        if not matches:
            raise click.ClickException(f"ProducerPerformance said:\n{output}")
        rate, _, p50, p99 = matches[-1]
        return Produced(float(rate), float(p50), float(p99))

    def consume(self, topic: str, records: int) -> float:
        """MB/s while fetching (the last column but one of ConsumerPerformance). The consumer sends
        a broker one request at a time, for the partitions without buffered records. If all of these
        are at their end, the request waits for `fetch.max.wait.ms` before the next one: by default,
        and at random, half a second of a fetch that takes less."""
        output = self.tool(
            "ConsumerPerformance",
            ["--bootstrap-server", self.bootstrap, "--topic", topic,
             "--messages", str(records), "--timeout", "60000",
             *self._client_file("--consumer.config", fetch_max_wait_ms="10")],
        )  # fmt: skip
        return float(output.strip().splitlines()[-1].split(",")[-2])
