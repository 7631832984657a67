"""One ZooKeeper for the broker's tests in each process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.zookeeper.server import ZooKeeperServer


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One server a process; every test uses a chroot of its own."""
    server = ZooKeeperServer(Path(tmp_path_factory.mktemp("zk")))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def chroot(request: pytest.FixtureRequest) -> str:
    """A path that no other test has, made of the module's name and the test's."""
    return "/" + re.sub(r"[^\w.-]+", "-", request.node.nodeid)
