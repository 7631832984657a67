"""The broker id without `broker.id` in the property file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.broker.net.raw import run
from tests.broker.nodes import Nodes
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.waiting import until
from urteil.broker.broker_id import stored_id, with_broker_id
from urteil.broker.config.broker_config import load_config
from urteil.broker.config.values import ConfigError
from urteil.broker.environment import Environment
from urteil.broker.log.storage import Storage


class NodesWithoutId(Nodes):
    """Brokers without `broker.id`."""

    def properties(self, broker: int) -> dict[str, str]:
        properties = super().properties(broker)
        del properties["broker.id"]
        return properties

    def _all_registered(self) -> bool:
        return self.zk.exists("/brokers/ids/1001") is not None


def folder(path: Path, text: str | None) -> str:
    path.mkdir()
    if text is not None:
        (path / "meta.properties").write_text(text)
    return str(path)


async def broker_id(connect: str, folder: str, **more: str) -> int:
    named = {name.replace("_", "."): value for name, value in more.items()}
    config = load_config({"zookeeper.connect": connect, "log.dirs": folder, **named})
    done = await with_broker_id(config, Environment())
    assert done.properties["broker.id"] == done.properties["node.id"] == str(done.broker_id)
    return done.broker_id


def test_generated_ids_follow_the_reserved_range(
    zookeeper: ZooKeeperServer, chroot: str, tmp_path: Path
) -> None:
    connect, empty = zookeeper.connect + chroot, folder(tmp_path / "a", None)

    async def scenario() -> None:
        assert await broker_id(connect, empty) == 1001
        assert sorted(await asyncio.gather(*(broker_id(connect, empty) for _ in range(3)))) == [
            1002, 1003, 1004,
        ]  # fmt: skip
        assert await broker_id(connect, empty, reserved_broker_max_id="5") == 10
        assert await broker_id(connect, empty, broker_id="-1") == 1006

    run(scenario())


def test_id_of_a_log_directory_is_kept(tmp_path: Path) -> None:
    with_id = folder(tmp_path / "a", "version=0\nbroker.id=1003\n")
    without = folder(tmp_path / "b", None)
    damaged = folder(tmp_path / "0", "version=9")

    async def scenario() -> None:
        assert await broker_id("nowhere:1", f"{damaged},{without},{with_id}") == 1003

    run(scenario())


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("version=0\nbroker.id=7\n", "version=0\nbroker.id=8\n", "node id 8 doesn't match .* 7"),
        ("version=0\nbroker.id=x\n", None, "broker.id 'x' is not a number"),
        ("version=1\nnode.id=7\n", None, "version '1', expected 0"),
    ],
)
def test_disagreeing_directories_are_rejected(
    first: str, second: str | None, why: str, tmp_path: Path
) -> None:
    folders = (folder(tmp_path / "a", first), folder(tmp_path / "b", second))
    with pytest.raises(ConfigError, match=why):
        stored_id(Storage(), folders)


def test_generated_id_is_registered_and_kept(
    zookeeper: ZooKeeperServer, chroot: str, tmp_path: Path
) -> None:
    with NodesWithoutId(tmp_path, zookeeper, chroot, 1) as nodes:
        (meta,) = tmp_path.rglob("meta.properties")
        assert "broker.id=1001\n" in meta.read_text()
        before = nodes.zk.get("/brokers/ids/1001")[1].czxid
        nodes.kill(1)
        nodes.start(1)
        until(
            lambda: (stat := nodes.zk.exists("/brokers/ids/1001")) and stat.czxid > before,
            "it registers again",
        )
        assert nodes.zk.get_children("/brokers/ids") == ["1001"]
