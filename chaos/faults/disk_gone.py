"""A log directory that is not there any more, as an unmounted or broken disk."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.disk_fault import LiveDiskFault
from urteil.chaos.log_directories import partitions

AWAY = ".away"


class DiskGone(LiveDiskFault):
    """One log directory of the broker is moved away under it, and back at healing.

    A broker with others goes on without the replicas that lay there; one without any ends.
    """

    name = "disk_gone"
    about = "a log directory of the broker is gone (unmounted, broken) until healing"
    proves = "the folder is not there; how many logs went with it"
    options: ClassVar[dict[str, str]] = {
        "disk": "which one, from 1 on (default that of the partition, else the last)"
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.moved: dict[str, Path] = {}

    def hurt(self, controls: Controls, node: str) -> tuple[bool, str]:
        with controls.disks.open_log_directories(node) as log_dirs:
            mine = f"{self.arguments.topic}-{self.arguments.partition}"
            held = [n for n, log_dir in enumerate(log_dirs, 1) if (log_dir / mine).is_dir()]
            number = int(self.arguments.number("disk", next(iter(held), len(log_dirs))))
            if not 1 <= number <= len(log_dirs):
                raise ValueError(f"disk={number} is not between 1 and {len(log_dirs)}")
            log_dir = log_dirs[number - 1]
            count = len(partitions(log_dir))
            log_dir.rename(log_dir.with_name(log_dir.name + AWAY))
            self.moved[node] = log_dir
        return not log_dir.exists(), f"{node}: {log_dir.name}/ with {count} logs is gone"

    def mend(self, controls: Controls, node: str) -> None:
        log_dir = self.moved.pop(node, None)
        if log_dir is None:
            return
        if log_dir.exists():  # made anew by somebody who wanted to write there
            log_dir.rename(log_dir.with_name(log_dir.name + ".made"))
        log_dir.with_name(log_dir.name + AWAY).rename(log_dir)
