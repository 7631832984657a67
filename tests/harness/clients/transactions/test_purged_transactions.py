"""A producer is given up after an abort that purged records.

librdkafka 2.16 gives their sequences to the records of the next transaction, which a broker then
takes for resent ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from kafka import KafkaAdminClient

from tests.broker.nodes import STEADY, Nodes
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.harness.clients.specs import spec_of
from tests.waiting import until
from urteil.harness.clients.transactions import journaled_transactions
from urteil.harness.clients.transactions.journaled_transactions import Transactions
from urteil.harness.evidence.journal import JournalWriter

TOPIC, COORDINATED = "spread", "__transaction_state"
ONE_COORDINATOR = {
    "transaction_state_log_num_partitions": "1",
    "transaction_state_log_replication_factor": "1",
    "transaction_state_log_min_isr": "1",
}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    (folder := tmp_path / "zookeeper").mkdir()
    server = ZooKeeperServer(folder)
    server.start()
    try:
        with Nodes(tmp_path, server, "/purged", 2, **STEADY, **ONE_COORDINATOR) as started:
            yield started
    finally:
        server.kill()


@pytest.fixture
def transactions(nodes: Nodes, tmp_path: Path) -> Transactions:
    spec = msgspec.structs.replace(spec_of("t1", "txn"), bootstrap=tuple(nodes.bootstrap))
    ready = Transactions(spec, JournalWriter(tmp_path / "journal"))
    until(ready.ensure_ready, "the producer has an id")
    return ready


@pytest.mark.thorough
def test_purged_record_costs_the_producer(
    nodes: Nodes, transactions: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journaled_transactions, "CALL_S", 2.0)
    admin = KafkaAdminClient(bootstrap_servers=nodes.bootstrap)
    admin.create_topics({TOPIC: {"num_partitions": 2, "replication_factor": 1}})
    admin.close()
    until(lambda: nodes.zk.exists(f"/brokers/topics/{TOPIC}/partitions/1/state"), "both are led")
    coordinator = nodes.state(COORDINATED, 0)["leader"]
    (partition,) = [p for p in (0, 1) if nodes.state(TOPIC, p)["leader"] != coordinator]
    leader = nodes.state(TOPIC, partition)["leader"]

    def play(*, killed: bool) -> str:
        assert transactions.ensure_ready()
        assert transactions.begin()
        assert transactions.send(TOPIC, partition, "key")
        assert transactions._await_deliveries()
        if killed:
            nodes.kill(leader)
            assert transactions.send(TOPIC, partition, "purged")
        return transactions.end(commit=True)

    assert play(killed=False) == "committed"
    first = transactions._kafka
    assert play(killed=True) == "aborted"
    nodes.start(leader)
    until(transactions.ensure_ready, "the next producer has an id")
    assert transactions._kafka is not first
    assert play(killed=False) == "committed"
