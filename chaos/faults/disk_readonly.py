"""A file system that turned read-only, as after an error of its device."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.faults.disk_fault import LiveDiskFault


class DiskReadonly(LiveDiskFault):
    """The log directories become read-only for the living process (in its own mount namespace).

    Files that are open stay writable; whatever is opened, made or renamed from now on fails with
    EROFS: checkpoints, which brokers write every five seconds, and new segments. Needs root.
    """

    name = "disk_readonly"
    about = "the broker's log directories turn read-only: what is opened from now on fails"
    proves = "how the kernel says that they are mounted for the process"

    def hurt(self, controls: Controls, node: str) -> tuple[bool, str]:
        told = controls.disks.make_read_only(node)
        acted = bool(told) and all(one.endswith(" ro") for one in told)
        return acted, f"{node}: {', '.join(told)}"
