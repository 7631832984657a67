"""The state that brokers of KRaft answer is that of the metadata log, on a real cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.waiting import until
from urteil.chaos.observations import LabFailure
from urteil.harness.cluster import Cluster
from urteil.harness.cluster.answered_state import AnsweredState
from urteil.harness.dependencies.kafka import kafka_tool
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KraftTarget

TOPIC = "orders"
NOBODY = "127.0.0.1:1"

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module", params=["3.9.1", "4.4.0"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    target = KraftTarget(version=request.param)
    with Cluster(ClusterSpec(), target, tmp_path_factory.mktemp("kraft")) as cluster:
        admin = cluster.controls().admin
        admin.create_topic(TOPIC, partitions=3, replication_factor=3, config={"retention.ms": "9"})
        admin.set_quotas("fast", {"producer_byte_rate": 1e6})
        set_default(cluster, "log.cleaner.threads=2")
        cluster.controls().await_healthy(deadline_s=60)
        yield cluster


def set_default(cluster: Cluster, setting: str) -> None:
    """A setting of all brokers, by Kafka's own tool."""
    argv = ["--bootstrap-server", cluster.bootstrap[0], "--entity-type", "brokers"]
    argv += ["--entity-default", "--alter", "--add-config", setting]
    subprocess.run(kafka_tool("kafka.admin.ConfigCommand", argv), check=True, timeout=60)


@pytest.fixture
def answered(cluster: Cluster) -> AnsweredState:
    addresses = {
        node: "{}:{}".format(*cluster.plan.direct_address(node)) for node in cluster.plan.brokers
    }
    return AnsweredState({"b9": NOBODY, **addresses})


def test_brokers_answer_what_the_metadata_log_has(
    cluster: Cluster, answered: AnsweredState
) -> None:
    answered.start(deadline_s=30)
    log = cluster.state
    assert list(answered.registered_brokers()) == list(log.registered_brokers())
    assert answered.controller() == log.controller()
    assert answered.controller_epoch() == log.controller_epoch()
    assert TOPIC in answered.topics() == log.topics()
    assert answered.topic_id(TOPIC) == log.topic_id(TOPIC)
    assert answered.partitions(TOPIC) == log.partitions(TOPIC)
    assert answered.topic_config(TOPIC) == log.topic_config(TOPIC) == {"retention.ms": "9"}
    assert answered.broker_defaults() == log.broker_defaults()
    assert answered.broker_defaults()["log.cleaner.threads"] == "2"
    assert answered.client_quotas("fast") == log.client_quotas("fast")
    assert answered.client_quotas(None) == log.client_quotas(None) == {}
    assert not answered.is_reassigning(TOPIC)
    assert answered.is_deleted("gone")
    assert answered.topic_id("gone") is None
    assert answered.partitions("gone") == []


def test_answers_of_an_isolated_broker_do_not_count(
    cluster: Cluster, answered: AnsweredState
) -> None:
    controls = cluster.controls()
    controller = controls.controller()
    views = controls.partitions(TOPIC)
    former = next(view.leader for view in views if view.leader not in (None, controller))
    links = controls.net.links_of(former, clients=False)
    controls.net.cut(links)
    until(lambda: former not in controls.registered_brokers())
    until(lambda: answered.partitions(TOPIC) == cluster.state.partitions(TOPIC))
    assert former not in answered.registered_brokers()
    assert former not in {view.leader for view in answered.partitions(TOPIC)}
    controls.net.heal(links)
    controls.await_healthy(deadline_s=60)


def test_cluster_without_answers_is_described() -> None:
    with pytest.raises(LabFailure, match=r"no broker answers: .*refused"):
        AnsweredState({"b1": NOBODY}).start(deadline_s=0.1)
