"""Disks of brokers in containers: a volume within reach, or files there and back by archive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from urteil.chaos.observations import LabFailure, NodeState, NodeStatus
from urteil.harness.runtimes.container_disks import ContainerDisks

ALONE = "only where the engine is this machine's own"


@dataclass
class Box:
    """A container's home as a folder; `near` when it is a volume of this machine."""

    folder: Path
    near: bool = False
    state: NodeState = NodeState.DEAD

    def status(self, node: str) -> NodeStatus:
        return NodeStatus(node=node, state=self.state, pid=None)

    def local_pid(self, node: str) -> int:
        raise LabFailure(f"{node} is not a process of this machine")

    def home(self, directory: Path) -> Path:
        return Path("/home")

    def volume(self, node: str) -> Path | None:
        return self.folder if self.near else None

    @contextmanager
    def unpack_home(self, node: str) -> Iterator[Path]:
        yield self.folder


@pytest.fixture
def box(tmp_path: Path) -> Box:
    for disk in ("disk1", "disk2"):
        (tmp_path / "data" / disk).mkdir(parents=True)
        (tmp_path / "data" / disk / "file").write_text(disk)
    return Box(tmp_path)


def disks(box: Box) -> ContainerDisks:
    """Log directories as the lab names them in its run's folder, wherever that lies."""
    data = Path("/runs/b1/nodes/b1/data")
    return ContainerDisks(lambda _node: [data / "disk1", data / "disk2"], box)


def test_log_directories_are_read_from_the_home(box: Box) -> None:
    assert disks(box).broker_log_dirs("b1") == [Path("/home/data/disk1"), Path("/home/data/disk2")]
    with disks(box).open_log_directories("b1") as log_dirs:
        assert [(log_dir / "file").read_text() for log_dir in log_dirs] == ["disk1", "disk2"]


def test_local_volume_can_be_changed_under_a_live_broker(box: Box) -> None:
    box.near, box.state = True, NodeState.RUNNING
    with disks(box).open_log_directories("b1") as log_dirs:
        (log_dirs[0] / "file").unlink()
        log_dirs[1].rename(log_dirs[1].with_name("away"))
    assert {path.name for path in (box.folder / "data").rglob("*")} == {"disk1", "away", "file"}


def test_archive_cannot_remove_files_of_a_running_broker(box: Box) -> None:
    with pytest.raises(LabFailure, match=ALONE), disks(box).open_log_directories("b1") as log_dirs:
        (log_dirs[0] / "file").unlink()


def test_disk_fault_on_a_remote_engine_names_its_limit(box: Box) -> None:
    box.state = NodeState.RUNNING
    with pytest.raises(LabFailure, match=ALONE), disks(box).open_log_directories("b1"):
        pass
    with pytest.raises(LabFailure, match=ALONE):
        disks(box).delay_writes("b1", 1)
    for act in (
        lambda: disks(box).limit_file_size("b1", 1),
        lambda: disks(box).make_read_only("b1"),
    ):
        with pytest.raises(LabFailure, match="not a process of this machine"):
            act()
