"""A log directory is missing, as after a disk failure or an unmount."""

from __future__ import annotations

from pathlib import Path

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.live_disk_fault import LiveDiskFault
from urteil.chaos.log_directories import partitions

AWAY = ".away"


class DiskGone(LiveDiskFault):
    """Renames one log directory of a running broker; healing renames it back. A broker with other
    directories continues without the replicas of the missing one; a broker without any exits."""

    name = "disk_gone"
    about = "remove a log directory of a broker until healing, as an unmount or a disk failure does"
    effects = frozenset({Effect.REMOVES_DISKS})
    proves = "the folder does not exist; how many logs it held"
    disk: int | None = whole_number(
        None,
        "number of the log directory; by default that of the partition, else the last",
        least=1,
    )

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.moved: dict[str, Path] = {}

    def damage_disk(self, controls: Controls, node: str) -> tuple[bool, str]:
        with controls.disks.open_log_directories(node) as log_dirs:
            partition = f"{self.arguments.topic}-{self.arguments.partition}"
            held = [n for n, log_dir in enumerate(log_dirs, 1) if (log_dir / partition).is_dir()]
            number = self.disk or next(iter(held), len(log_dirs))
            if number > len(log_dirs):
                raise ValueError(f"disk={number} is not between 1 and {len(log_dirs)}")
            log_dir = log_dirs[number - 1]
            count = len(partitions(log_dir))
            log_dir.rename(log_dir.with_name(log_dir.name + AWAY))
            self.moved[node] = log_dir
        return not log_dir.exists(), f"{node}: {log_dir.name}/ with {count} logs is gone"

    def repair_disk(self, controls: Controls, node: str) -> None:
        log_dir = self.moved.pop(node, None)
        if log_dir is None:
            return
        if log_dir.exists():  # created by a process that wanted to write there
            log_dir.rename(log_dir.with_name(log_dir.name + ".made"))
        log_dir.with_name(log_dir.name + AWAY).rename(log_dir)
