"""The faults by name, one a module. What a fault must say of itself: `Fault`."""

from urteil.chaos.aim import Aim
from urteil.chaos.faults.base import Fault, Proof
from urteil.chaos.faults.crash import Crash
from urteil.chaos.faults.isolate import Isolate
from urteil.chaos.faults.latency import Latency
from urteil.chaos.faults.limit import Limit
from urteil.chaos.faults.partition import Partition
from urteil.chaos.faults.pause import Pause
from urteil.chaos.faults.rolling_restart import RollingRestart
from urteil.chaos.faults.shutdown import Shutdown
from urteil.chaos.faults.unplug import Unplug

FAULTS: dict[str, type[Fault]] = {
    fault.name: fault
    for fault in (
        Crash,
        Isolate,
        Latency,
        Limit,
        Partition,
        Pause,
        RollingRestart,
        Shutdown,
        Unplug,
    )
}
"""Every fault that a schedule may name."""

__all__ = ["FAULTS", "Aim", "Fault", "Proof"]
