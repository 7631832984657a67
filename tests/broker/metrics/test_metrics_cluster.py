"""Metrics of real brokers under load, while one of them dies and returns."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from tests.broker.metrics.exposition import Labels, parse
from tests.subscribed import subscribed
from tests.waiting import until
from urteil.broker.metrics.declarations import METRICS
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import UrteilTarget

REPLICAS = "kafka_server_replicamanager"
CONTROLLER = "kafka_controller_kafkacontroller"
TRAFFIC = "kafka_server_brokertopicmetrics"
PURGATORY = "kafka_server_delayedoperationpurgatory"
REQUESTS = "kafka_network_requestmetrics"
RECORDS, VALUE_BYTES = 50, 200


class ScrapedMetrics:
    """The scraped metrics of each broker, by name."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.addresses = dict(zip(cluster.plan.brokers, cluster.metrics, strict=True))

    def scrape(self, broker: str) -> dict[str, dict[Labels, float]]:
        with urllib.request.urlopen(f"http://{self.addresses[broker]}/metrics", timeout=10) as got:
            return parse(got.read().decode())

    def total(self, name: str, *labels: tuple[str, str]) -> float:
        """The sum over live brokers."""
        alive = [address for address in self.addresses if self.cluster.runtime.is_alive(address)]
        return self.total_of(alive, name, *labels)

    def total_of(self, brokers: Sequence[str], name: str, *labels: tuple[str, str]) -> float:
        return sum(self.scrape(broker)[name].get(labels, 0.0) for broker in brokers)

    def await_total(self, name: str, expected: float) -> None:
        """Wait for a sum, since metadata reaches brokers at different times."""
        until(lambda: self.total(name) == expected, f"{name} {expected}")


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScrapedMetrics]:
    folder = Path(tmp_path_factory.mktemp("metrics"))
    with Cluster(ClusterSpec(brokers=3), UrteilTarget(), folder) as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        admin.create_topics([NewTopic("counted", num_partitions=3, replication_factor=3)])
        admin.close()
        yield ScrapedMetrics(cluster)


def produce(brokers: ScrapedMetrics) -> None:
    producer = KafkaProducer(bootstrap_servers=brokers.cluster.bootstrap, acks="all")
    for number in range(RECORDS):
        producer.send("counted", b"x" * VALUE_BYTES, partition=number % 3).get(30)
    producer.close()


def test_produced_and_consumed_records_are_counted(brokers: ScrapedMetrics) -> None:
    produce(brokers)
    consumer = subscribed(
        "counted",
        brokers.cluster.bootstrap,
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
    )
    assert len([next(consumer) for _ in range(RECORDS)]) == RECORDS
    consumer.close()
    topic = ("topic", "counted")
    assert brokers.total(f"{TRAFFIC}_messagesin_total", topic) == RECORDS
    bytes_in = brokers.total(f"{TRAFFIC}_bytesin_total", topic)
    assert RECORDS * VALUE_BYTES < bytes_in < RECORDS * (VALUE_BYTES + 100)
    assert brokers.total(f"{TRAFFIC}_bytesout_total", topic) >= bytes_in
    logs = [brokers.scrape(address) for address in brokers.addresses]
    for partition in range(3):
        where = (topic, ("partition", str(partition)))
        assert len({each["kafka_log_log_logendoffset"][where] for each in logs}) == 1
        assert all(each["kafka_log_log_logstartoffset"][where] == 0 for each in logs)
    assert all(sum(_of("counted", each["kafka_log_log_size"])) == bytes_in for each in logs)


def test_scrape_has_every_declared_metric_and_its_labels(brokers: ScrapedMetrics) -> None:
    produce(brokers)
    for broker in brokers.addresses:
        scraped = brokers.scrape(broker)
        assert scraped.keys() == METRICS.keys()
        for name, samples in scraped.items():
            labels = {tuple(label for label, _ in sample) for sample in samples}
            totals = {()} if name.startswith(TRAFFIC) else set()
            assert labels <= {METRICS[name].labels} | totals, name


def _of(topic: str, samples: dict[Labels, float]) -> list[float]:
    return [value for labels, value in samples.items() if ("topic", topic) in labels]


def test_requests_have_counts_and_quantiles(brokers: ScrapedMetrics) -> None:
    produce(brokers)
    for broker in brokers.addresses:
        families = brokers.scrape(broker)
        produces = [
            value
            for labels, value in families[f"{REQUESTS}_requests_total"].items()
            if ("request", "Produce") in labels
        ]
        assert sum(produces) >= RECORDS // 3
        for times in ("requestqueuetimems", "localtimems", "remotetimems", "totaltimems"):
            counted = families[f"{REQUESTS}_{times}_count"]
            assert counted[(("request", "Produce"),)] == sum(produces)
            slowest = families[f"{REQUESTS}_{times}"]
            assert 0 <= slowest[(("request", "Produce"), ("quantile", "0.999"))] < 30_000
        waited = families[f"{REQUESTS}_remotetimems"]
        assert waited[(("request", "FetchFollower"), ("quantile", "0.999"))] > 100
        idle = families["kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"]
        assert 0.3 < idle[()] <= 1
    waiting, fetch = f"{PURGATORY}_purgatorysize", ("delayedOperation", "Fetch")
    until(lambda: brokers.total(waiting, fetch) > 0, "no fetch waits")


def test_one_controller_and_a_leader_for_each_partition(brokers: ScrapedMetrics) -> None:
    brokers.await_total(f"{CONTROLLER}_activecontrollercount", 1)
    brokers.await_total(f"{CONTROLLER}_activebrokercount", 3)
    brokers.await_total(f"{CONTROLLER}_offlinepartitionscount", 0)
    assert brokers.total(f"{CONTROLLER}_globaltopiccount") >= 1
    led = brokers.total(f"{REPLICAS}_leadercount")
    assert led == brokers.total(f"{CONTROLLER}_globalpartitioncount")
    assert brokers.total(f"{REPLICAS}_partitioncount") == 3 * led


def test_dead_follower_is_visible_until_it_returns(brokers: ScrapedMetrics) -> None:
    def under_replicated() -> float:
        return brokers.total(f"{REPLICAS}_underreplicatedpartitions")

    until(lambda: under_replicated() == 0, "all in sync")
    controls = brokers.cluster.controls()
    dead = next(address for address in brokers.addresses if address != controls.controller())
    rest = [address for address in brokers.addresses if address != dead]  # whose counters go on
    before = brokers.total_of(rest, f"{REPLICAS}_isrexpands_total")
    rounds = "kafka_controller_controllerstats_leaderelectionrateandtimems_count"
    held = brokers.total_of(rest, rounds)
    controls.kill(dead)
    until(lambda: under_replicated() == 3, "three partitions lack a replica")
    brokers.await_total(f"{CONTROLLER}_activecontrollercount", 1)
    brokers.await_total(f"{CONTROLLER}_activebrokercount", 2)
    controls.start(dead)
    until(lambda: under_replicated() == 0, "in sync again")
    assert brokers.total(f"{REPLICAS}_isrexpands_total") >= before + 3
    assert brokers.total(rounds) >= held + 2
    unclean = "kafka_controller_controllerstats_uncleanleaderelections_total"
    assert brokers.total(unclean) == 0
