"""Move replicas between the log directories of their brokers while they are written and read."""

from __future__ import annotations

from urteil.chaos.admin_controls import Directories
from urteil.chaos.controls import Controls
from urteil.chaos.faults.fault import Proof
from urteil.chaos.faults.topic_fault import TopicFault
from urteil.chaos.node_selectors import NoTarget


class MoveDirectories(TopicFault):
    """AlterReplicaLogDirs (KIP-113): each replica to the next log directory of its broker, under
    load; healing moves it back."""

    name = "move_directories"
    about = "move a topic's replicas to another log directory of their brokers, and back at healing"
    proves = "where the brokers say that replicas lie, before and after"
    _first: Directories | None = None

    def begin(self, controls: Controls) -> Proof:
        admin, topic = controls.admin, self.arguments.topic
        self.targets = (topic,)
        self.replicas(admin)
        places = admin.directories(topic)
        if any(len(all_of) < 2 for all_of, _ in places.values()):
            raise NoTarget("a broker has one log directory alone: give it more")
        before = {one: lies for one, (_, lies) in places.items()}
        self._first = before
        wanted = {
            one: all_of[(all_of.index(lies) + 1) % len(all_of)]
            for one, (all_of, lies) in places.items()
        }
        admin.move_logs(topic, wanted)
        now = {one: lies for one, (_, lies) in admin.directories(topic).items()}
        return Proof(acted=now == wanted, text=f"{_told(topic, before)}; then {_told(topic, now)}")

    def heal(self, controls: Controls) -> str:
        if self._first is None:
            return "nothing was moved"
        controls.admin.move_logs(self.arguments.topic, self._first)
        return "all lie where they lay"


def _told(topic: str, places: Directories) -> str:
    shown = (
        f"{topic}-{partition} of {node} in {path.rpartition('/')[2]}"
        for (node, partition), path in sorted(places.items())
    )
    return ", ".join(shown)
