from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.zookeeper.server import ZooKeeperServer


@pytest.fixture(scope="package")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    server = ZooKeeperServer(Path(tmp_path_factory.mktemp("zk")))
    server.start()
    yield server
    server.kill()
