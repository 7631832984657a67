"""A broker restarts and then receives a request that its controller made before (KAFKA-7235)."""

from __future__ import annotations

from functools import partial

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.fault_options import text
from urteil.chaos.faults.base.fault import (
    EXTERNAL,
    WITH_ZOOKEEPER,
    Fault,
    Proof,
    describe_stopped_nodes,
)
from urteil.chaos.waiting import until

SETTLES_S = 20.0
UPDATE_METADATA, STOP_REPLICA = "UpdateMetadata", "StopReplica"


class LateCommand(Fault):
    """Stops a broker, starts it, and sends it an old request when it is in sync again.

    The request is the UpdateMetadata of before the restart, or the StopReplica of the controlled
    shutdown. Both carry the broker epoch of the earlier start, so that the broker rejects them.
    """

    name = "late_command"
    about = "restart a broker, then deliver a controller's request from before the restart"
    on_targets = (*WITH_ZOOKEEPER, EXTERNAL)
    effects = frozenset({Effect.STOPS_NODES, Effect.RESTARTS_NODES, Effect.SENDS_LATE_REQUESTS})
    proves = "another process id serves, and its response to the request"
    command: str = text(
        UPDATE_METADATA, "the late request", choices=(UPDATE_METADATA, STOP_REPLICA)
    )

    def begin(self, controls: Controls) -> Proof:
        self.targets = tuple(node_selectors.select_running(controls, self.arguments))
        texts, acted = [], True
        for node in self.targets:
            old = controls.status(node).pid
            build_request = (
                controls.commands.stop_replica_request
                if self.command == STOP_REPLICA
                else controls.commands.update_metadata_request
            )
            request = build_request(node)
            controls.stop(node)
            new = controls.start(node).pid
            until(partial(_is_in_sync, controls, node), deadline_s=SETTLES_S)
            answer = controls.commands.send(node, request) or "no error"
            acted = acted and new != old
            texts.append(
                f"{node}: pid {old} ended, pid {new} responds to a late {self.command}: {answer}"
            )
        return Proof(acted=acted, text="; ".join(texts))

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            controls.start(node)
        return f"{', '.join(self.targets)} runs"

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)


def _is_in_sync(controls: Controls, node: str) -> bool:
    """Whether every replica of the broker is in sync."""
    views = (view for topic in controls.topics() for view in controls.partitions(topic))
    return all(node in view.isr for view in views if node in view.replicas)
