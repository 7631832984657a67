from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.zookeeper.server import ZooKeeperServer


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One server a module; every test uses a chroot of its own."""
    server = ZooKeeperServer(Path(tmp_path_factory.mktemp("zk")))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def chroot(request: pytest.FixtureRequest) -> str:
    return "/" + request.node.name.replace("[", "-").replace("]", "")
