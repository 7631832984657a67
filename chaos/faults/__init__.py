"""All faults by name. Each fault is a module with one subclass of `Fault`, in the folder of its
family; its definition registers it."""

import importlib
import pkgutil

from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.base.fault import REGISTERED, Fault, Proof

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

FAULTS: dict[str, type[Fault]] = {
    fault.name: fault
    for fault in sorted(REGISTERED.values(), key=lambda fault: fault.list_position())
}
"""Every fault that a schedule may name."""

__all__ = ["FAULTS", "Fault", "FaultArguments", "Proof"]
