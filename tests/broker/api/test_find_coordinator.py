"""FindCoordinator of many keys."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from tests.broker.nodes import Nodes
from tests.broker.waits.bystander import Client
from tests.broker.waits.controller import wait_for_controller
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.waiting import until
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import FindCoordinatorRequest, FindCoordinatorResponse

KEYS = [f"group {n}" for n in range(2_000)]


def errors(nodes: Nodes) -> set[int]:
    """The errors of one request with all keys."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=KEYS)
    with Client(nodes.ports[1]) as client:
        answer = client.ask(ApiKey.FIND_COORDINATOR, 4, request)
    assert isinstance(answer, FindCoordinatorResponse)
    assert [coordinator.key for coordinator in answer.coordinators] == KEYS
    return {coordinator.error_code for coordinator in answer.coordinators}


def received_packets(zookeeper: ZooKeeperServer) -> int:
    with socket.create_connection(("127.0.0.1", zookeeper.port)) as connection:
        connection.sendall(b"srvr")
        text = connection.makefile().read()
    count = re.search(r"Received: (\d+)", text)
    assert count is not None
    return int(count[1])


def test_missing_topic_is_created_for_all_keys(tmp_path: Path, zookeeper: ZooKeeperServer) -> None:
    with Nodes(tmp_path, zookeeper, "/find", 1, offsets_topic_replication_factor="1") as nodes:
        wait_for_controller(nodes.ports[1])
        assert errors(nodes) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        until(lambda: errors(nodes) == {ErrorCode.NONE}, "a coordinator for each key")


def test_failed_topic_creation_is_tried_once_for_all_keys(
    tmp_path: Path, zookeeper: ZooKeeperServer
) -> None:
    with Nodes(tmp_path, zookeeper, "/tried", 1, offsets_topic_replication_factor="3") as nodes:
        wait_for_controller(nodes.ports[1])
        before = received_packets(zookeeper)
        assert errors(nodes) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert received_packets(zookeeper) - before < len(KEYS) / 10
