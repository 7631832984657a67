"""A new, empty broker joins the cluster and receives replicas."""

from __future__ import annotations

from urteil.chaos import node_selectors
from urteil.chaos.controls import Controls
from urteil.chaos.effects import Effect
from urteil.chaos.faults.base.broker_drain import count_in_sync, drain, reassign
from urteil.chaos.faults.base.fault import (
    ON_THIS_MACHINE,
    WITH_ZOOKEEPER,
    Fault,
    Proof,
    describe_stopped_nodes,
)
from urteil.chaos.log_directories import delete_content


class AddBroker(Fault):
    """The fault first drains the chosen broker, stops it and empties its disk. The broker that
    then joins is new except for its id. It receives the replicas that it had before.
    """

    name = "add_broker"
    about = "let an empty broker join the cluster and move replicas to it"
    effects = frozenset({Effect.STOPS_NODES, Effect.MOVES_REPLICAS})
    on_runtimes = ON_THIS_MACHINE
    proves = "a new process with an empty disk, registered, with replicas in sync in the end"
    sample = "follower"
    expiry_s = 600.0
    on_targets = WITH_ZOOKEEPER

    def begin(self, controls: Controls) -> Proof:
        (node,) = self.targets = (node_selectors.select_nodes(controls, self.arguments)[0],)
        before = drain(controls, node)
        controls.stop(node)
        with controls.disks.open_log_directories(node) as log_dirs:
            for log_dir in log_dirs:
                delete_content(log_dir)
        joined = controls.start(node)
        new = count_in_sync(controls, node) == 0
        reassign(controls, before)
        now = count_in_sync(controls, node)
        acted = new and now > 0 and node in controls.registered_brokers()
        text = f"{node}: joined empty as pid {joined.pid}, {now} replicas in sync now"
        return Proof(acted=acted, text=text)

    def heal(self, controls: Controls) -> str:
        for node in self.targets:
            controls.start(node)
        return f"{', '.join(self.targets)} stays in the cluster"

    def find_residual_effects(self, controls: Controls) -> str:
        return describe_stopped_nodes(controls, self.targets)
