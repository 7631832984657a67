"""The end that readers of committed records reach, on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka.admin import KafkaAdminClient, NewTopic

from urteil.harness.clients.consumers.visible_ends import visible_ends
from urteil.harness.clients.transactions.open_transactions import read_end_offsets
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import parse_target

SLOTS = [("t", 0), ("t", 1), ("t", 2)]


@pytest.mark.thorough
def test_markers_and_open_transactions_are_behind_the_visible_end(tmp_path: Path) -> None:
    with Cluster(ClusterSpec(brokers=1), parse_target("urteil"), tmp_path) as cluster:
        servers = ",".join(cluster.bootstrap)
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        admin.create_topics([NewTopic("t", 3, 1)])
        admin.close()
        plain = Producer({"bootstrap.servers": servers})
        transactional = Producer({"bootstrap.servers": servers, "transactional.id": "x"})
        plain.produce("t", "v", partition=0)
        plain.flush()
        transactional.init_transactions()
        for partition in (1, 2):
            transactional.begin_transaction()
            transactional.produce("t", "v", partition=partition)
            transactional.flush()
            if partition == 1:
                transactional.commit_transaction()
        ends = read_end_offsets(cluster.bootstrap, SLOTS)
        assert ends == {("t", 0): 1, ("t", 1): 2, ("t", 2): 1}
        assert visible_ends(cluster.bootstrap, ends) == {("t", 0): 1, ("t", 1): 1, ("t", 2): 0}
        transactional.abort_transaction()
