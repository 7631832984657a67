"""A real ZooKeeper's transaction log yields every version of every znode."""

import json
import socket
import subprocess
import time

import pytest
from kazoo.client import KazooClient

from tests.ports import free_port
from tests.waiting import until
from urteil.harness.dependencies.java import java
from urteil.harness.dependencies.zookeeper import zookeeper_classpath
from urteil.harness.evidence.readers.zookeeper_log import (
    Change,
    LogFiles,
    StateRows,
    find_log_files,
    find_longest_log,
    read_changes,
)

STATE = "/brokers/topics/orders/partitions/0/state"


def await_port(port, server):
    def accepts():
        assert server.poll() is None
        with socket.socket() as probe:
            probe.settimeout(0.5)
            return probe.connect_ex(("127.0.0.1", port)) == 0

    until(accepts, "ZooKeeper starts")


def state(leader, epoch):
    return json.dumps(
        {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": epoch,
         "isr": [leader, 3]}
    ).encode()  # fmt: skip


def play(port):
    client = KazooClient(f"127.0.0.1:{port}")
    client.start(timeout=60)
    for path in ("/brokers", "/brokers/ids", "/brokers/topics"):
        client.create(path)
    client.create("/controller_epoch", b"1")
    client.create("/controller", b'{"version":2,"brokerid":2}', ephemeral=True)
    topic = {"partitions": {"0": [1, 2, 3]}, "topic_id": "id1", "version": 3}
    client.create("/brokers/topics/orders", json.dumps(topic).encode())
    client.create("/brokers/topics/orders/partitions")
    client.create("/brokers/topics/orders/partitions/0")
    transaction = client.transaction()
    transaction.check("/controller_epoch", 0)
    transaction.create(STATE, state(1, 0))
    transaction.commit()
    for epoch in range(1, 4):
        client.set(STATE, state(1 + epoch % 2, epoch))
    client.create("/brokers/ids/7", b"{}", ephemeral=True)
    client.delete("/brokers/ids/7")
    client.create("/brokers/ids/8", b"{}", ephemeral=True)
    client.create("/somewhere", b"else")
    client.stop()
    client.close()


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The data directory of a ZooKeeper that has ended, and the times around its life."""
    folder = tmp_path_factory.mktemp("zookeeper")
    port = free_port()
    (folder / "zoo.cfg").write_text(
        f"dataDir={folder}/data\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\ntickTime=500\n"
    )
    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", zookeeper_classpath()]
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    argv = [java(), *options, main, str(folder / "zoo.cfg")]
    began_ms = time.time_ns() // 1_000_000
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            await_port(port, server)
            play(port)
        finally:
            server.terminate()
    return folder / "data", began_ms, time.time_ns() // 1_000_000


def test_every_znode_version_is_returned(played):
    data, began_ms, ended_ms = played
    files = LogFiles()
    changes = list(read_changes(data, files))
    assert files.damage == []
    assert files.first_zxid == 1
    states = [change for change in changes if change.path == STATE]
    assert [change.version for change in states] == [0, 1, 2, 3]
    assert [json.loads(change.data)["leader_epoch"] for change in states] == [0, 1, 2, 3]
    assert [change.zxid for change in changes] == sorted(change.zxid for change in changes)
    assert all(began_ms <= change.wall_ms <= ended_ms for change in changes)


def test_ephemerals_end_with_their_delete_or_session(played):
    changes = list(read_changes(played[0], LogFiles()))
    for path in ("/brokers/ids/7", "/brokers/ids/8", "/controller"):
        assert [change.data is None for change in changes if change.path == path] == [False, True]


def test_rows(played):
    states = StateRows(1_000)
    rows = [row for change in read_changes(played[0], LogFiles()) for row in states.rows(change)]
    assert "/somewhere" not in {row["path"] for row in rows}
    partition = [row for row in rows if row["path"] == STATE]
    assert [(row["leader"], row["leader_epoch"]) for row in partition] == [
        (1, 0), (2, 1), (1, 2), (2, 3)
    ]  # fmt: skip
    assert {row["topic_id"] for row in partition} == {"id1"}
    assert partition[0]["replicas"] == "[1, 2, 3]"
    assert partition[1]["isr"] == "[2, 3]"
    assert partition[0]["at_ns"] == partition[0]["wall_ms"] * 1_000_000 - 1_000
    assert [row["controller"] for row in rows if row["path"] == "/controller"] == [2, None]
    assert [row["controller_epoch"] for row in rows if row["path"] == "/controller_epoch"] == [1]


def test_settings_of_topics_and_quotas_are_states():
    states = StateRows(0)
    changes = [
        ("/config/topics/orders", b'{"version":1,"config":{"retention.ms":"1"}}'),
        ("/config/clients/<default>", b'{"version":1,"config":{}}'),
        ("/config/users/ann", b'{"version":1,"config":{"SCRAM-SHA-256":"salt"}}'),
        ("/config/topics/orders", None),
    ]
    rows = [
        row
        for zxid, (path, data) in enumerate(changes)
        for row in states.rows(Change(zxid=zxid, wall_ms=0, path=path, data=data, version=0))
    ]
    assert [(row["path"], row["settings"]) for row in rows] == [
        ("/config/topics/orders", '{"retention.ms": "1"}'),
        ("/config/clients/<default>", "{}"),
        ("/config/topics/orders", None),
    ]


def test_truncated_log_keeps_earlier_records(played, tmp_path):
    (path,) = find_log_files(played[0])
    content = path.read_bytes().rstrip(b"\0")
    everything = list(read_changes(played[0], LogFiles()))
    (tmp_path / "version-2").mkdir()
    for length in range(16, len(content), 37):
        (tmp_path / "version-2" / path.name).write_bytes(content[:length])
        changes = list(read_changes(tmp_path, LogFiles()))
        assert changes == everything[: len(changes)]


def test_changed_byte_is_reported(played, tmp_path):
    (path,) = find_log_files(played[0])
    changed = bytearray(path.read_bytes())
    changed[200] ^= 0xFF
    (tmp_path / "version-2").mkdir()
    (tmp_path / "version-2" / path.name).write_bytes(changed)
    files = LogFiles()
    list(read_changes(tmp_path, files))
    assert files.damage


def test_longest_log_of_an_ensemble_is_chosen(played, tmp_path):
    short = tmp_path / "short"
    (short / "version-2").mkdir(parents=True)
    (path,) = find_log_files(played[0])
    (short / "version-2" / path.name).write_bytes(path.read_bytes()[:600])
    assert find_longest_log([short, played[0], tmp_path / "none"]) == played[0]
    assert find_longest_log([tmp_path / "none"]) is None


def test_gapless_log_is_chosen_among_equally_long_ones(played, tmp_path):
    """A server that was away took what it had missed as a snapshot: its log lacks that."""
    gap = tmp_path / "gap"
    (gap / "version-2").mkdir(parents=True)
    (path,) = find_log_files(played[0])
    content = path.read_bytes()
    after = 16 + 12 + int.from_bytes(content[24:28], "big") + 1
    (gap / "version-2" / path.name).write_bytes(content[:16] + content[after:])
    assert find_longest_log([gap, played[0]]) == find_longest_log([played[0], gap]) == played[0]


def test_recreated_topic_has_its_new_id():
    states = StateRows(0)
    seen_rows = []
    for zxid, topic_id in enumerate(("old", "new")):
        topic = json.dumps({"partitions": {"0": [1]}, "topic_id": topic_id}).encode()
        for path, data in (("/brokers/topics/t", topic), ("/brokers/topics/t/partitions/0/state",
                                                          state(1, 0))):  # fmt: skip
            change = Change(zxid=zxid, wall_ms=0, path=path, data=data, version=0)
            seen_rows += [row["topic_id"] for row in states.rows(change)]
    assert seen_rows == ["old", "old", "new", "new"]


def test_mark_for_deletion_names_the_topic():
    states = StateRows(0)
    topic = json.dumps({"partitions": {"0": [1]}, "topic_id": "id"}).encode()
    seen_rows = []
    for zxid, (path, data) in enumerate(
        [("/brokers/topics/t", topic), ("/admin/delete_topics/t", b""), ("/brokers/topics/t", None),
         ("/admin/delete_topics/t", None)]
    ):  # fmt: skip
        version = -1 if data is None else 0
        change = Change(zxid=zxid, wall_ms=0, path=path, data=data, version=version)
        seen_rows += [(row["path"], row["topic_id"], row["version"]) for row in states.rows(change)]
    wish = "/admin/delete_topics/t"
    assert [row for row in seen_rows if row[0] == wish] == [(wish, "id", 0), (wish, "id", -1)]


def test_log_of_a_moved_partition_is_stray():
    states = StateRows(0)
    for replicas in ([1, 2], [2, 3]):
        data = json.dumps({"topic_id": "id", "partitions": {"0": replicas}}).encode()
        list(states.rows(Change(zxid=1, wall_ms=0, path="/brokers/topics/t", data=data, version=0)))
    assert states.is_stray("t", "id", 0, 1)
    assert not states.is_stray("t", "id", 0, 3)
    assert not states.is_stray("t", "another", 0, 1)
    assert not states.is_stray("t", "id", 1, 1)
    assert not states.is_stray("unknown", "id", 0, 1)


def test_topic_without_an_id_has_one_of_its_creation():
    rows = StateRows(0, has_topic_ids=False)
    path, value = "/brokers/topics/t", {"partitions": {"0": [1]}}

    def topic_id(zxid, version):
        data = json.dumps(value).encode()
        (row,) = rows.rows(Change(zxid=zxid, wall_ms=0, path=path, data=data, version=version))
        return row["topic_id"]

    assert topic_id(0x10, 0) == "t@10"
    assert topic_id(0x11, 1) == "t@10"
    assert topic_id(0x1F, 0) == "t@1f"
    assert rows.topic_ids == {"t": "t@1f"}
