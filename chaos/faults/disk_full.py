"""A full disk: no log of the broker can grow any more."""

from __future__ import annotations

from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.disk_fault import LiveDiskFault
from urteil.chaos.faults.fault import until
from urteil.chaos.log_directories import partitions, segments
from urteil.chaos.observations import LabFailure

ENDS_S = 1.0
"""A broker that met the limit before it was lifted ends by then."""


class DiskFull(LiveDiskFault):
    """The living process may make no file larger than its largest log is now (RLIMIT_FSIZE).

    Its next append there fails with EFBIG where a full disk says ENOSPC; small files, as
    checkpoints are, can still be written, which a full disk may allow or not. At healing there is
    room again: a broker that lives on with its only log directory just goes on.
    """

    name = "disk_full"
    about = "no file of the broker may grow beyond its largest log: its next append fails"
    proves = "the file size limit that the kernel keeps for the process, and the largest log"
    options: ClassVar[dict[str, str]] = {
        "room_bytes": "how far the largest log may still grow (default 0)"
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.room = int(arguments.number("room_bytes", 0, least=0))
        self.limited: set[str] = set()
        """Of those with one log directory: of several, one may be given up by who lives on."""

    def heal(self, controls: Controls) -> str:
        alive = node_selectors.running_nodes(controls, self.targets)
        if not self.hurting or not self.limited == set(alive) == set(self.targets):
            return super().heal(controls)
        try:
            for node in alive:
                controls.disks.limit_file_size(node, None)
        except LabFailure:
            if node_selectors.running_nodes(controls, alive) == alive:
                raise
        if until(lambda: node_selectors.running_nodes(controls, alive) != alive, deadline_s=ENDS_S):
            return super().heal(controls)
        self.hurting = False
        for node in alive:
            controls.allow_exit(node, allowed=False)
        return f"room again for {', '.join(alive)}, which did not end"

    def hurt(self, controls: Controls, node: str) -> tuple[bool, str]:
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
        limit = largest + self.room
        told = controls.disks.limit_file_size(node, limit)
        if len(log_dirs) == 1:
            self.limited.add(node)
        text = f"{node}: files end at {told} bytes, its largest log has {largest}"
        return told == limit, text
