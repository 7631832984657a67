"""Disk faults damage the files of a log, and only those."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path
from random import Random

import pytest

from tests.broker.log.old_folders import Row, old_messages
from tests.chaos.paper import PaperCluster
from tests.chaos.paper_disks import (
    BATCH_BYTES,
    PaperDisks,
    batch,
    write_log,
    write_recovery_points,
)
from urteil.chaos import log_directories
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults import FAULTS
from urteil.chaos.flushed_files import FlushedFiles
from urteil.chaos.node_selectors import NoTarget
from urteil.chaos.observations import LabFailure, NodeState

ACTIVE_BASE = 20
LOG_BYTES = 5 * BATCH_BYTES


def arguments(target: str, seed: str = "7", **options: str | float | bool) -> FaultArguments:
    return FaultArguments(target=target, topic="t", seed=seed, options=options)


def _whole(segment: Path, batch: log_directories.Batch) -> bool:
    return segment.read_bytes()[batch.position : batch.end].endswith(b"x" * 70)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("flushed", [0, 20, 21, 30])
def test_power_cut_loses_a_suffix_of_unflushed_data(
    tmp_path: Path, seed: int, flushed: int
) -> None:
    write_log(tmp_path / "t-0")
    cut = log_directories.cut_power(tmp_path / "t-0", flushed, Random(seed))
    assert cut is not None
    first, active = log_directories.segments(tmp_path / "t-0")
    assert first.stat().st_size == LOG_BYTES
    assert active.stat().st_size == (
        LOG_BYTES if cut.how == "zeroed" else LOG_BYTES - cut.lost_bytes
    )
    intact = [batch.base for batch in log_directories.batches(active) if _whole(active, batch)]
    assert intact == list(range(ACTIVE_BASE, cut.first_lost, 4))
    assert cut.first_lost >= max(flushed, ACTIVE_BASE)


def _row(offset: int, magic: int) -> Row:
    return Row(offset, 1000 if magic else -1, None, b"v%d" % offset)


def test_batches_of_every_format_are_read(tmp_path: Path) -> None:
    plain, newest = old_messages(0, 0, [_row(4, 0)]), batch(10, 3)
    wrapped = [old_messages(magic, 1, [_row(at, magic), _row(at + 1, magic)])
               for magic, at in ((0, 5), (1, 8))]  # fmt: skip
    batches = [plain, *wrapped, newest]
    segment = tmp_path / f"{4:020d}.log"
    segment.write_bytes(b"".join(batches) + plain[:-1])
    results = list(log_directories.batches(segment))
    assert [(result.base, result.last) for result in results] == [(4, 4), (5, 6), (7, 9), (10, 12)]
    assert [result.size for result in results] == [len(part) for part in batches]
    assert [result.position for result in results] == [0, *list(accumulate(map(len, batches)))[:-1]]


def test_power_cut_loses_messages_of_old_formats(tmp_path: Path) -> None:
    log = tmp_path / "t-0"
    log.mkdir()
    data = b"".join(old_messages(0, 1, [_row(at, 0), _row(at + 1, 0)]) for at in range(0, 20, 2))
    (log / f"{0:020d}.log").write_bytes(data)
    cut = log_directories.cut_power(log, 8, Random(3))
    assert cut is not None
    assert cut.first_lost in range(8, 20, 2)
    assert log_directories.cut_power(log, 20, Random(3)) is None


def test_flushed_log_survives_a_power_cut(tmp_path: Path) -> None:
    write_log(tmp_path / "t-0")
    assert log_directories.cut_power(tmp_path / "t-0", 40, Random(1)) is None
    assert log_directories.cut_power(tmp_path / "none", 0, Random(1)) is None


def test_power_cut_damages_companions_of_the_active_segment_only(tmp_path: Path) -> None:
    write_log(tmp_path / "t-0")
    closed = {path: path.read_bytes() for path in (tmp_path / "t-0").glob(f"{0:020d}.*")}
    snapshot = tmp_path / "t-0" / f"{ACTIVE_BASE:020d}.snapshot"
    young = snapshot.with_name(f"{30:020d}.snapshot")
    young.write_bytes(b"s" * 40)
    log_directories.cut_power(tmp_path / "t-0", 0, Random(3))
    assert all(path.read_bytes() == content for path, content in closed.items())
    assert snapshot.read_bytes() == b"s" * 40
    assert young.read_bytes() != b"s" * 40
    assert (tmp_path / "t-0" / f"{ACTIVE_BASE:020d}.index").read_bytes() != b"i" * 64


def test_power_cut_damages_snapshot_at_begin_of_active_segment(
    tmp_path: Path,
) -> None:
    write_log(tmp_path / "t-0")
    snapshot = tmp_path / "t-0" / f"{ACTIVE_BASE:020d}.snapshot"
    flushed = snapshot.with_name(f"{ACTIVE_BASE - 1:020d}.snapshot")
    flushed.write_bytes(b"s" * 40)
    log_directories.cut_power(tmp_path / "t-0", 0, Random(3), snapshots=True)
    assert snapshot.read_bytes() != b"s" * 40
    assert flushed.read_bytes() == b"s" * 40


def test_recovery_points_and_logs_are_read_as_brokers_write_them(tmp_path: Path) -> None:
    for name in ("t-0", "a.b_c-12", "t-1.f3-delete", "t-2.f3-stray"):
        write_log(tmp_path / name, segments=1)
    write_recovery_points(tmp_path, t_0=5)
    assert log_directories.recovery_points(tmp_path) == {"t-0": 5}
    assert [partition.name for partition in log_directories.partitions(tmp_path)] == [
        "a.b_c-12",
        "t-0",
    ]


def test_equal_seeds_cut_alike_and_report_the_loss() -> None:
    results = []
    for _ in range(2):
        fault, cluster = FAULTS["power_cut"](arguments("all")), PaperCluster()
        for node in cluster.brokers:
            write_recovery_points(cluster.disks.folder(node), t_0=28)
        results.append(json.loads(fault.begin(cluster).harm or ""))
    assert results[0]["brokers"] == results[1]["brokers"]
    assert set(results[0]["brokers"]) == {"b1", "b2", "b3"}
    assert all(logs["t-0"][0] >= 28 for logs in results[0]["brokers"].values())
    assert FAULTS["power_cut"](arguments("all")).voided_promises() == {"durability"}
    assert FAULTS["power_cut"](arguments("leader")).voided_promises() == frozenset()


def test_power_cut_with_epochs_loses_the_files_of_leader_epochs() -> None:
    cluster = PaperCluster()
    fault = FAULTS["power_cut"](arguments("leader", epochs=True))
    assert not fault.begin(cluster).acted  # there was no such file
    path = cluster.disks.folder("b2") / "t-0" / "leader-epoch-checkpoint"
    path.write_text("0\n1\n0 0\n")
    cluster.start("b2")
    proof = FAULTS["power_cut"](arguments("leader", epochs=True)).begin(cluster)
    assert proof.acted
    assert proof.text.endswith("; 1 files of leader epochs removed")
    assert not path.exists()


def test_power_cut_by_the_record_of_flushes_cuts_the_metadata_log(tmp_path: Path) -> None:
    cluster = PaperCluster(zookeepers=0)
    (tmp_path / "flushes").touch()
    cluster.disks.flushed = FlushedFiles(tmp_path / "flushes")
    write_log(cluster.disks.folder("b2") / log_directories.METADATA_LOG)
    proof = FAULTS["power_cut"](arguments("leader")).begin(cluster)
    brokers = json.loads(proof.harm or "")["brokers"]
    assert set(brokers["b2"]) == {"t-0", log_directories.METADATA_LOG}


def test_power_cut_by_recovery_points_spares_the_metadata_log() -> None:
    cluster = PaperCluster(zookeepers=0)
    log = cluster.disks.folder("b2") / log_directories.METADATA_LOG
    write_log(log)
    before = {file.name: file.read_bytes() for file in log.iterdir()}
    proof = FAULTS["power_cut"](arguments("leader")).begin(cluster)
    assert set(json.loads(proof.harm or "")["brokers"]["b2"]) == {"t-0"}
    assert {file.name: file.read_bytes() for file in log.iterdir()} == before


def test_missing_disk_returns_with_its_logs() -> None:
    cluster = PaperCluster()
    fault = FAULTS["disk_gone"](arguments("leader"))
    data = cluster.disks.folder("b2")
    fault.begin(cluster)
    assert not data.exists()
    data.mkdir()  # a broker may make it anew
    fault.heal(cluster)
    assert [partition.name for partition in log_directories.partitions(data)] == ["t-0"]


def test_emptied_disk_has_no_log_and_voids_durability() -> None:
    cluster = PaperCluster()
    fault = FAULTS["disk_emptied"](arguments("leader"))
    proof = fault.begin(cluster)
    assert not list(cluster.disks.folder("b2").iterdir())
    assert json.loads(proof.harm or "")["brokers"] == {"b2": {"t-0": [0, None]}}
    assert fault.voided_promises() == {"durability"}


@pytest.mark.parametrize("how", ["bit", "cut"])
@pytest.mark.parametrize("up", [False, True])
def test_damage_affects_one_batch_of_a_closed_segment(how: str, up: bool) -> None:
    cluster = PaperCluster()
    log = cluster.disks.folder("b2") / "t-0"
    write_recovery_points(log.parent, t_0=28 if up else 0)  # up, nobody looks
    before = {path: path.read_bytes() for path in log.iterdir()}
    fault = FAULTS["segment_damaged"](arguments("leader", how=how, up=up))
    proof = fault.begin(cluster)
    (changed,) = [path for path, content in before.items() if path.read_bytes() != content]
    assert changed.name == f"{0:020d}.log"
    assert (cluster.states["b2"] is NodeState.RUNNING) is up
    ((low, high),) = json.loads(proof.harm or "")["brokers"]["b2"].values()
    assert low % 4 == 0
    if up:
        assert high == (low + 4 if how == "bit" else ACTIVE_BASE)
    else:
        assert high is None
    fault.heal(cluster)
    assert log.exists() is not up


@pytest.mark.parametrize("seed", range(10))
def test_damage_of_a_stopped_broker_is_within_reach_of_recovery(seed: int) -> None:
    """Data below the recovery point stays: recovery would not detect damage there."""
    proof = FAULTS["segment_damaged"](arguments("leader", f"{seed}")).begin(PaperCluster())
    ((low, _),) = json.loads(proof.harm or "")["brokers"]["b2"].values()
    assert low in (12, 16)


def test_flushed_log_of_a_stopped_broker_is_not_damaged() -> None:
    cluster = PaperCluster()
    write_recovery_points(cluster.disks.folder("b2"), t_0=20)
    proof = FAULTS["segment_damaged"](arguments("leader")).begin(cluster)
    assert not proof.acted
    assert "no closed segment with a batch behind its recovery point" in proof.text


def test_log_without_closed_segment_cannot_be_damaged(tmp_path: Path) -> None:
    cluster = PaperCluster()
    for path in (cluster.disks.folder("b2") / "t-0").glob(f"{ACTIVE_BASE:020d}.*"):
        path.unlink()
    with pytest.raises(NoTarget, match="no closed segment"):
        FAULTS["segment_damaged"](arguments("leader", up=True)).begin(cluster)


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("segment_damaged", {"how": "fire"}, "how is 'fire': give bit or cut"),
        ("disk_gone", {"disk": 2}, "disk=2 is not between 1 and 1"),
    ],
)
def test_invalid_options_are_rejected(name: str, option: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FAULTS[name](arguments("leader", **option)).begin(PaperCluster())


class LateExit(PaperDisks):
    """The broker has reached the limit, and exits when it is lifted, or right before."""

    before = False

    def limit_file_size(self, node: str, size_bytes: int | None) -> int | None:
        result = super().limit_file_size(node, size_bytes)
        if size_bytes is None:
            self.cluster.kill(node)
            if self.before:
                raise LabFailure(f"{node} cannot be limited: no such process")
        return result


@pytest.mark.parametrize("before", [False, True])
def test_broker_that_exits_during_healing_is_started(before: bool) -> None:
    fault, cluster = FAULTS["disk_full"](arguments("b1")), PaperCluster()
    cluster.disks = LateExit(cluster)
    cluster.disks.before = before
    assert fault.begin(cluster).acted
    assert "now pid" in fault.heal(cluster)
    assert fault.find_residual_effects(cluster) == ""
    assert cluster.starts["b1"] == 2
