"""A full disk: no log of the broker can grow."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.fault_options import whole_number
from urteil.chaos.faults.base.live_disk_fault import LiveDiskFault
from urteil.chaos.log_directories import partitions, segments
from urteil.chaos.observations import LabFailure
from urteil.chaos.waiting import until

ENDS_S = 1.0
"""A broker that reached the limit before healing exits within this time."""


class DiskFull(LiveDiskFault):
    """Limits the size of files (RLIMIT_FSIZE) to the size of the broker's largest log.

    The next append to that log fails with EFBIG, where a full disk returns ENOSPC. Small files such
    as checkpoints can still be written; a full disk may allow that or not. Healing lifts the limit:
    a broker with one log directory that survived continues.
    """

    name = "disk_full"
    about = "no file of the broker can grow beyond its largest log: the next append fails"
    effects = frozenset({Effect.FILLS_DISKS})
    proves = "the file size limit that the kernel keeps for the process, and the largest log"
    room_bytes: int = whole_number(0, "bytes that the largest log may still grow", least=0)

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.limited: set[str] = set()
        """Limited brokers with one log directory. A broker with several may have taken one
        offline."""

    def heal(self, controls: Controls) -> str:
        alive = node_selectors.running_nodes(controls, self.targets)
        if not self.is_active or not self.limited == set(alive) == set(self.targets):
            return super().heal(controls)
        try:
            for node in alive:
                controls.disks.limit_file_size(node, None)
        except LabFailure:
            if node_selectors.running_nodes(controls, alive) == alive:
                raise
        if until(lambda: node_selectors.running_nodes(controls, alive) != alive, deadline_s=ENDS_S):
            return super().heal(controls)
        self.is_active = False
        for node in alive:
            controls.allow_exit(node, allowed=False)
        return f"limit lifted for {', '.join(alive)}, which did not exit"

    def damage_disk(self, controls: Controls, node: str) -> tuple[bool, str]:
        with controls.disks.open_log_directories(node) as log_dirs:
            largest = max(
                (
                    active.stat().st_size
                    for log_dir in log_dirs
                    for folder in partitions(log_dir)
                    for active in segments(folder)[-1:]
                ),
                default=0,
            )
        limit = largest + self.room_bytes
        limited_to = controls.disks.limit_file_size(node, limit)
        if len(log_dirs) == 1:
            self.limited.add(node)
        text = f"{node}: files are limited to {limited_to} bytes, its largest log has {largest}"
        return limited_to == limit, text
