"""A broker restarts, and what its controller told it before arrives once more (KAFKA-7235)."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.fault_arguments import FaultArguments
from urteil.chaos.faults.fault import Fault, Proof, describe_stopped_nodes, until

SETTLES_S = 20.0
UPDATE_METADATA, STOP_REPLICA = "UpdateMetadata", "StopReplica"
COMMANDS = (UPDATE_METADATA, STOP_REPLICA)


class LateCommand(Fault):
    """SIGTERM, a start, and, when the broker is in sync again, a request that was packed before:
    who led what then (UpdateMetadata), or the end of its replicas as it was told in its shutdown
    (StopReplica). Both name the life that they are meant for, by which a broker refuses them."""

    name = "late_command"
    about = "a broker restarts, then a controller's request to its life before arrives"
    family = "process"
    proves = "another process id serves, and what it answered to the request"
    options: ClassVar[dict[str, str]] = {
        "command": f"{UPDATE_METADATA} (the default) or {STOP_REPLICA}",
    }

    def __init__(self, arguments: FaultArguments) -> None:
        super().__init__(arguments)
        self.command = str(arguments.options.get("command", UPDATE_METADATA))
        if self.command not in COMMANDS:
            raise ValueError(f"no command {self.command!r}: give {' or '.join(COMMANDS)}")

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        command = self.command
        told, acted = [], True
        for node in self.targets:
            old = controls.status(node).pid
            pack = controls.commands.stop if command == STOP_REPLICA else controls.commands.metadata
            late = pack(node)
            controls.stop(node)
            new = controls.start(node).pid
            until(partial(_in_sync, controls, node), deadline_s=SETTLES_S)
            answer = controls.commands.send(node, late) or "no error"
            acted = acted and new != old
            told.append(f"{node}: pid {old} ended, pid {new} answers to a late {command}: {answer}")
        return Proof(acted=acted, text="; ".join(told))

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            controls.start(node)
        return f"{', '.join(self.targets)} runs"

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)


def _in_sync(controls: Controls, node: str) -> bool:
    """Whether it is in sync of all that it has."""
    views = (view for topic in controls.topics() for view in controls.partitions(topic))
    return all(node in view.isr for view in views if node in view.replicas)
