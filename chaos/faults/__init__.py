"""The faults by name, one a module. What a fault must say of itself: `Fault`."""

from urteil.chaos.aim import Aim
from urteil.chaos.faults.base import Fault, Proof
from urteil.chaos.faults.controller_deleted import ControllerDeleted
from urteil.chaos.faults.crash import Crash
from urteil.chaos.faults.disk_emptied import DiskEmptied
from urteil.chaos.faults.disk_full import DiskFull
from urteil.chaos.faults.disk_gone import DiskGone
from urteil.chaos.faults.disk_readonly import DiskReadonly
from urteil.chaos.faults.isolate import Isolate
from urteil.chaos.faults.latency import Latency
from urteil.chaos.faults.limit import Limit
from urteil.chaos.faults.partition import Partition
from urteil.chaos.faults.pause import Pause
from urteil.chaos.faults.power_cut import PowerCut
from urteil.chaos.faults.rolling_restart import RollingRestart
from urteil.chaos.faults.segment_damaged import SegmentDamaged
from urteil.chaos.faults.session_expired import SessionExpired
from urteil.chaos.faults.shutdown import Shutdown
from urteil.chaos.faults.unplug import Unplug

FAULTS: dict[str, type[Fault]] = {
    fault.name: fault
    for fault in (
        ControllerDeleted,
        Crash,
        DiskEmptied,
        DiskFull,
        DiskGone,
        DiskReadonly,
        Isolate,
        Latency,
        Limit,
        Partition,
        Pause,
        PowerCut,
        RollingRestart,
        SegmentDamaged,
        SessionExpired,
        Shutdown,
        Unplug,
    )
}
"""Every fault that a schedule may name."""

__all__ = ["FAULTS", "Aim", "Fault", "Proof"]
