"""Administration by znodes, and a controller's requests to old brokers, on a real ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.zookeeper.server import ZooKeeperServer
from urteil.broker.wire.framing import decode_request
from urteil.broker.wire.messages.stop_replica import StopReplicaRequest
from urteil.broker.wire.messages.update_metadata import UpdateMetadataRequest
from urteil.chaos.capabilities import BROKER_EPOCHS, CAPABILITIES, REASSIGNMENT
from urteil.harness.cluster.administration import admin_znodes
from urteil.harness.cluster.controller_requests import ControllerRequests
from urteil.harness.cluster.zookeeper_state import ZooKeeperState

pytestmark = pytest.mark.thorough
TOPIC, SLOT = "t", ("t", 0)
STATE = {"leader": 1, "isr": [1, 2], "leader_epoch": 3, "version": 1, "controller_epoch": 7}


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer(Path(tmp_path_factory.mktemp("zk")))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def state(zookeeper: ZooKeeperServer) -> Iterator[ZooKeeperState]:
    """A topic with one partition on brokers 1 and 2, of which both are registered."""
    state = ZooKeeperState(f"127.0.0.1:{zookeeper.port}")
    state.lacks = frozenset(CAPABILITIES)
    state.start(deadline_s=30.0)
    broker = {
        "listener_security_protocol_map": {"INTERNAL": "PLAINTEXT"},
        "endpoints": ["INTERNAL://b1:9092"],
        "rack": None,
    }
    for path, value in {
        f"/brokers/topics/{TOPIC}": {"version": 1, "partitions": {"0": [1, 2]}},
        f"/brokers/topics/{TOPIC}/partitions/0/state": STATE,
        "/brokers/ids/1": broker,
        "/brokers/ids/2": broker,
        "/controller": {"brokerid": 1},
        "/controller_epoch": 7,
    }.items():
        state.client.create(path, json.dumps(value).encode(), makepath=True)
    yield state
    for path in ("/brokers", "/controller", "/controller_epoch", "/admin", "/config"):
        if state.client.exists(path):
            state.client.delete(path, recursive=True)
    state.close()


def test_reassignment_is_requested_once_and_seen_until_its_end(state: ZooKeeperState) -> None:
    assert admin_znodes.request_reassignment(state.client, {SLOT: [2, 1]})
    assert not admin_znodes.request_reassignment(state.client, {SLOT: [2, 1]})
    assert state.is_reassigning(TOPIC)
    assert not state.is_reassigning("other")
    state.client.delete(admin_znodes.REASSIGN)
    assert not state.is_reassigning(TOPIC)


def test_request_of_another_tool_is_no_move_by_protocol(
    state: ZooKeeperState,
) -> None:
    admin_znodes.request_reassignment(state.client, {SLOT: [2, 1]})
    state.lacks = frozenset(CAPABILITIES) - {REASSIGNMENT.name}
    assert not state.is_reassigning(TOPIC)


def test_preferred_election_names_the_partitions(state: ZooKeeperState) -> None:
    assert admin_znodes.request_election(state.client, [SLOT])
    data, _ = state.client.get(admin_znodes.ELECT)
    assert json.loads(data) == {"version": 1, "partitions": [{"topic": "t", "partition": 0}]}


def test_settings_are_merged_and_brokers_are_notified(state: ZooKeeperState) -> None:
    admin_znodes.write_settings(state.client, "topics/t", {"a": "1", "b": "2"})
    admin_znodes.write_settings(state.client, "topics/t", {"a": None, "c": "3"})
    assert state.topic_config(TOPIC) == {"b": "2", "c": "3"}
    changes = sorted(state.client.get_children("/config/changes"))
    assert len(changes) == 2
    data, _ = state.client.get(f"/config/changes/{changes[0]}")
    assert json.loads(data) == {"version": 2, "entity_path": "topics/t"}


def test_added_partitions_have_as_many_replicas_as_the_first(state: ZooKeeperState) -> None:
    admin_znodes.write_partitions(state.client, TOPIC, 3, [1, 2, 3])
    assert [view.replicas for view in state.partitions(TOPIC)] == [
        ("b1", "b2"),
        ("b2", "b3"),
        ("b3", "b1"),
    ]


def test_missing_topic_id_is_made_of_the_creation(state: ZooKeeperState) -> None:
    stat = state.client.exists(f"/brokers/topics/{TOPIC}")
    assert stat is not None
    assert state.topic_id(TOPIC) == f"{TOPIC}@{stat.czxid:x}"
    assert state.topic_id("other") is None
    state.lacks = frozenset()
    assert state.topic_id(TOPIC) is None


def test_old_brokers_get_requests_without_a_broker_epoch(state: ZooKeeperState) -> None:
    requests = ControllerRequests(state, lambda _: ("127.0.0.1", 0))
    header, update = decode_request(requests.update_metadata_request("b2")[4:])
    assert isinstance(update, UpdateMetadataRequest)
    assert (header.api_version, update.controller_epoch) == (3, 7)
    (partition,) = update.ungrouped_partition_states
    assert (partition.topic_name, partition.leader_epoch, tuple(partition.isr)) == (
        TOPIC,
        3,
        (1, 2),
    )
    assert [broker.endpoints[0].listener for broker in update.live_brokers] == ["INTERNAL"] * 2
    header, stop = decode_request(requests.stop_replica_request("b2")[4:])
    assert isinstance(stop, StopReplicaRequest)
    assert header.api_version == 0
    assert [
        ungrouped_partition.topic_name for ungrouped_partition in stop.ungrouped_partitions
    ] == [TOPIC]


def test_newer_brokers_get_requests_with_their_broker_epoch(state: ZooKeeperState) -> None:
    state.lacks = frozenset(CAPABILITIES) - {BROKER_EPOCHS.name}
    requests = ControllerRequests(state, lambda _: ("127.0.0.1", 0))
    life = state.registered_brokers()["b2"]
    header, update = decode_request(requests.update_metadata_request("b2")[4:])
    assert isinstance(update, UpdateMetadataRequest)
    assert (header.api_version, update.broker_epoch) == (5, life)
    assert [topic.topic_name for topic in update.topic_states] == [TOPIC]
