"""A file system that turned read-only, as after a device error."""

from __future__ import annotations

from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.live_disk_fault import LiveDiskFault


class DiskReadonly(LiveDiskFault):
    """Remounts the log directories read-only in the mount namespace of the running broker.

    Open files stay writable. Opening, creating or renaming a file fails with EROFS: checkpoints,
    which brokers write every five seconds, and new segments. Needs root.
    """

    name = "disk_readonly"
    about = "make the broker's log directories read-only: it can open no file for writing"
    effects = frozenset({Effect.LOCKS_DISKS})
    proves = "the mount options that the kernel reports for the process"

    def damage_disk(self, controls: Controls, node: str) -> tuple[bool, str]:
        mounts = controls.disks.make_read_only(node)
        acted = bool(mounts) and all(mount.endswith(" ro") for mount in mounts)
        return acted, f"{node}: {', '.join(mounts)}"
