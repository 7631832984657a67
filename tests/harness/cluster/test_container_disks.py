"""Disks of brokers in containers: files there and back by archive, and what that cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from urteil.chaos.views import LabFailure, NodeState, NodeStatus
from urteil.harness.runtimes.container_disks import ContainerDisks


@dataclass
class Box:
    """A container's home as a folder."""

    home: Path
    state: NodeState = NodeState.DEAD

    def status(self, node: str) -> NodeStatus:
        return NodeStatus(node=node, state=self.state, pid=None)

    @contextmanager
    def unpacked(self, node: str) -> Iterator[Path]:
        yield self.home


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


def test_log_directories_are_those_of_the_home(box: Box) -> None:
    with disks(box).opened("b1") as log_dirs:
        assert [(one / "file").read_text() for one in log_dirs] == ["disk1", "disk2"]


def test_nothing_can_be_taken_away_by_archive(box: Box) -> None:
    with pytest.raises(LabFailure, match="--runtime process"), disks(box).opened("b1") as log_dirs:
        (log_dirs[0] / "file").unlink()


def test_what_needs_the_process_says_where_it_can_be_done(box: Box) -> None:
    box.state = NodeState.RUNNING
    with pytest.raises(LabFailure, match="--runtime process"), disks(box).opened("b1"):
        pass
    with pytest.raises(LabFailure, match="--runtime process"):
        disks(box).limit_files("b1", 1)
    with pytest.raises(LabFailure, match="--runtime process"):
        disks(box).freeze("b1")
