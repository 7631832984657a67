"""A paper cluster for tests of faults: the Controls protocol over plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.chaos.paper_admin import PaperAdmin
from tests.chaos.paper_disks import PaperClocks, PaperCommands, PaperDisks, PaperZooKeeperAdmin
from urteil.chaos.link_rules import LinkRule, RuleHit
from urteil.chaos.observations import (
    CLIENT,
    Descriptors,
    LabFailure,
    Limits,
    Link,
    NodeState,
    NodeStatus,
    PartitionView,
    Probe,
    Transfer,
)
from urteil.chaos.packet_controls import PacketCount

VIEW = PartitionView(
    topic="t",
    partition=0,
    leader="b2",
    leader_epoch=3,
    isr=("b2", "b3"),
    replicas=("b2", "b3", "b1"),
)


class PaperNet:
    """Links among three brokers, a ZooKeeper server and the clients. A cut link answers
    no probe."""

    def __init__(self, cluster: PaperCluster) -> None:
        self.cluster = cluster
        self.broken: set[Link] = set()
        self.further: list[Link] = []
        self.delays: dict[Link, int] = {}
        self.degraded: dict[Link, dict[str, str | int]] = {}
        self.rules: dict[str, tuple[LinkRule, tuple[Link, ...]]] = {}
        self.hit: dict[str, tuple[LinkRule, tuple[Link, ...]]] = {}

    def links(self) -> Sequence[Link]:
        brokers, keepers = self.cluster.brokers, self.cluster.metadata_nodes
        inner = [Link(a, b) for a in brokers for b in (*brokers, *keepers) if a != b]
        inner += [Link(a, b) for a in keepers for b in keepers if a != b]
        return [*inner, *(Link(CLIENT, broker) for broker in brokers), *self.further]

    def links_between(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Link]:
        pairs = {(a, b) for a in left for b in right} | {(b, a) for a in left for b in right}
        return [link for link in self.links() if (link.src, link.dst) in pairs]

    def links_of(self, node: str, *, clients: bool = True) -> Sequence[Link]:
        results = [link for link in self.links() if node in (link.src, link.dst)]
        return [link for link in results if clients or link.src != CLIENT]

    def cut(self, links: Sequence[Link], *, answers_only: bool = False, owner: str = "") -> None:
        if not self.cluster.without_effect:
            self.broken |= set(links)

    close = cut

    def latency(
        self,
        links: Sequence[Link],
        *,
        latency_ms: int,
        jitter_ms: int = 0,
        answers_only: bool = False,
        owner: str = "",
    ) -> None:
        if not self.cluster.without_effect:
            self.delays |= dict.fromkeys(links, latency_ms)

    def add_toxic(
        self,
        links: Sequence[Link],
        kind: str,
        attributes: Mapping[str, int],
        *,
        streams: Sequence[str] = (),
        owner: str = "",
    ) -> None:
        if not self.cluster.without_effect:
            self.degraded |= {key: {"kind": kind, **attributes} for key in links}

    def measure_transfer(
        self,
        link: Link,
        *,
        request_count: int = 1,
        request_bytes: int = 0,
        dst_closes: bool = False,
        timeout_s: float = 5.0,
    ) -> Transfer:
        """Responses of 200 bytes in one piece, changed by the link's toxic."""
        toxic = self.degraded.get(link, {})
        size = 200 * request_count
        transfer = Transfer(
            link=link, ended="answered", received_bytes=size, answers=request_count, pieces=1,
            largest_piece_bytes=size, seconds=0.001, closing_ms=1.0,
        )  # fmt: skip
        match toxic.get("kind"):
            case "bandwidth":
                return replace(transfer, seconds=size / 1000 / int(toxic["rate"]))
            case "slow_close":
                return replace(transfer, closing_ms=2.0 * int(toxic["delay"]))
            case "reset_peer":
                return replace(transfer, ended="reset", answers=0, received_bytes=0)
            case "limit_data":
                passed = int(toxic["bytes"]) // (request_bytes or 25)
                return replace(transfer, ended="closed", answers=passed)
            case "slicer":
                return replace(transfer, pieces=1 + size // int(toxic["average_size"]))
        return transfer

    def add_rule(self, links: Sequence[Link], rule: LinkRule, *, owner: str) -> None:
        if not self.cluster.without_effect:
            self.rules[owner] = self.hit[owner] = (rule, tuple(links))

    def rule_hits(self, links: Sequence[Link], *, owner: str) -> Sequence[RuleHit]:
        """One hit on the first link of a rule, also after its healing."""
        if owner not in self.hit:
            return []
        rule, ruled = self.hit[owner]
        return [
            RuleHit(
                at_ns=1, link=str(ruled[0]), direction=rule.direction, api=rule.api, version=1,
                correlation_id=1, client_id="c", act=rule.act, occurrence=1,
            )
        ]  # fmt: skip

    def new_hits(
        self, links: Sequence[Link], *, owner: str, seen: dict[str, int]
    ) -> tuple[Sequence[RuleHit], int]:
        """The one hit, once."""
        hits = [] if seen else self.rule_hits(links, owner=owner)
        seen["b1"] = 1
        return hits, 0

    def lost_hits(self, *, owner: str) -> str:
        return ""

    def passed_frames(self, links: Sequence[Link]) -> str:
        return "7 Fetch"

    def disturbed_links(self) -> dict[Link, tuple[str, ...]]:
        degraded = dict.fromkeys([*self.delays, *self.degraded], ("degraded",))
        return {**degraded, **dict.fromkeys(self.broken, ("cut_upstream",))}

    def heal(self, links: Sequence[Link], *, owner: str | None = None) -> None:
        self.broken -= set(links)
        self.rules = {name: rule for name, rule in self.rules.items() if owner not in (None, name)}
        for link in links:
            self.delays.pop(link, None)
            self.degraded.pop(link, None)

    def heal_all(self) -> None:
        self.heal(self.links())

    def probe(self, link: Link, *, timeout_s: float = 1.0) -> Probe:
        deaf = self.cluster.most[link.dst] <= 30
        runs = self.cluster.states[link.dst] is NodeState.RUNNING and not deaf
        alive = runs and link not in self.broken
        rtt_ms = 1.0 + self.delays.get(link, 0) if alive else None
        return Probe(link=link, answered=alive, rtt_ms=rtt_ms, detail="")

    def check(self) -> None:
        pass


class PaperBoxes:
    """The containers of the paper cluster: networks and limits."""

    def __init__(self, cluster: PaperCluster) -> None:
        self.cluster = cluster
        self.found: dict[str, Limits] = {}

    def unplug(self, node: str) -> None:
        self.cluster.net.cut(self.cluster.net.links_of(node))

    def plug(self, node: str) -> None:
        self.cluster.net.heal(self.cluster.net.links_of(node))

    def limits(self, node: str) -> Limits:
        return self.found.get(node, Limits(node=node, cpus=None, memory_mb=None))

    def limit(self, node: str, *, cpus: float | None, memory_mb: int | None) -> Limits:
        if not self.cluster.without_effect:
            self.found[node] = Limits(node=node, cpus=cpus, memory_mb=memory_mb)
        return self.limits(node)

    def unlimit(self, node: str) -> Limits:
        self.found.pop(node, None)
        return self.limits(node)


class PaperPackets:
    """The packets of the paper cluster, whose nodes have a host each. Each direction has lost seven
    of nine."""

    def __init__(self, cluster: PaperCluster) -> None:
        self.cluster = cluster
        self.rules: dict[str, list[Link]] = {}

    def crossing_links(self, links: Sequence[Link]) -> Sequence[Link]:
        return [link for link in links if link.src != CLIENT]

    def disturbed_by(self, links: Sequence[Link]) -> Sequence[Link]:
        return [
            link
            for link in self.cluster.net.links()
            if link in links or Link(link.dst, link.src) in links
        ]

    def drop(
        self, links: Sequence[Link], *, percent: int = 100, reject: bool = False, owner: str
    ) -> None:
        self.rules[owner] = [*links]
        if percent == 100:
            self.cluster.net.cut(self.disturbed_by(links))

    def counts(self, *, owner: str) -> Mapping[str, PacketCount]:
        lost = 0 if self.cluster.without_effect else 7
        return {str(link): PacketCount(seen=9, lost=lost) for link in self.rules.get(owner, ())}

    def restore(self, *, owner: str) -> None:
        self.cluster.net.heal(self.disturbed_by(self.rules.pop(owner, [])))


class PaperQuorum:
    """Implements `QuorumControls`. The directory of a voter is the number of its starts."""

    def __init__(self, cluster: PaperCluster) -> None:
        self.cluster = cluster
        self.directories = {node: "1" for node in cluster.voters}

    def voters(self) -> Mapping[str, str]:
        return dict(self.directories)

    def add_voter(self, node: str) -> None:
        if not self.cluster.without_effect:
            self.directories[node] = str(self.cluster.starts[node])

    def remove_voter(self, node: str) -> None:
        if not self.cluster.without_effect:
            del self.directories[node]


class PaperCluster:
    """Three brokers without elections. With `without_effect` no fault has an effect."""

    def __init__(
        self, *, without_effect: bool = False, zookeepers: int = 1, controllers: int = 0
    ) -> None:
        """Without ZooKeeper, the quorum of KRaft is the controllers, or else the brokers."""
        self.brokers = ("b1", "b2", "b3")
        self.zookeepers = tuple(f"zk{number}" for number in range(1, zookeepers + 1))
        own = tuple(f"q{number}" for number in range(1, controllers + 1))
        self.voters = () if zookeepers else own or self.brokers
        self.metadata_nodes = (*self.zookeepers, *own)
        self.nodes = (*self.metadata_nodes, *self.brokers)
        self.states = dict.fromkeys(self.nodes, NodeState.RUNNING)
        self.starts = dict.fromkeys(self.states, 1)
        self.without_effect = without_effect
        self.net = PaperNet(self)
        self.containers = PaperBoxes(self)
        self.packets = PaperPackets(self)
        self.disks = PaperDisks(self)
        self.zookeeper_admin = PaperZooKeeperAdmin(self)
        self.commands = PaperCommands(self)
        self.views = {"t": {0: VIEW}}
        self.admin = PaperAdmin(self)
        self.quorum = PaperQuorum(self)
        self.clocks = PaperClocks(self)
        self.lab_failure: str | None = None
        self.acts: list[str] = []
        self.held: dict[int, bool] = {}
        self.starved: dict[str, float] = {}
        self.most = dict.fromkeys(self.states, 1024)

    def status(self, node: str) -> NodeStatus:
        state = self.states[node]
        pid = None if state is NodeState.DEAD else 100 * self.starts[node] + int(node[-1])
        return NodeStatus(node=node, state=state, pid=pid, exit_code=-9 if pid is None else None)

    def _become(self, act: str, node: str, state: NodeState) -> NodeStatus:
        self.acts.append(f"{act} {node}")
        if not self.without_effect:
            self.states[node] = state
        return self.status(node)

    def kill(self, node: str) -> NodeStatus:
        return self._become("kill", node, NodeState.DEAD)

    def stop(self, node: str, *, deadline_s: float = 30.0) -> NodeStatus:
        ended = self._become("stop", node, NodeState.DEAD)
        return replace(ended, exit_code=None if ended.exit_code is None else 0)

    def start(self, node: str, *, deadline_s: float = 60.0) -> NodeStatus:
        if self.states[node] is NodeState.DEAD:
            self.starts[node] += 1
            self._become("start", node, NodeState.RUNNING)
        return self.status(node)

    def pause(self, node: str) -> NodeStatus:
        return self._become("pause", node, NodeState.PAUSED)

    def resume(self, node: str) -> NodeStatus:
        return self._become("resume", node, NodeState.RUNNING)

    def allow_exit(self, node: str, *, allowed: bool = True) -> None:
        self.acts.append(f"allow_exit {node} {allowed}")

    def throttle_cpu(self, node: str, cpus: float) -> Limits:
        if not self.without_effect:
            self.starved[node] = cpus
        return Limits(node=node, cpus=self.starved.get(node), memory_mb=None)

    def restore_cpu(self, node: str) -> Limits:
        self.starved.pop(node, None)
        return self.cpu_throttling(node)

    def cpu_throttling(self, node: str) -> Limits:
        cpus = self.starved.get(node)
        return Limits(node=node, cpus=cpus, memory_mb=None, throttled=9, periods=10)

    def descriptors(self, node: str) -> Descriptors:
        return Descriptors(node=node, open=30, lowest_free=30, limit=self.most[node])

    def limit_descriptors(self, node: str, most: int) -> Descriptors:
        if not self.without_effect:
            self.most[node] = most
        return self.descriptors(node)

    def hold(self, fault: str, *, expiry_s: float) -> int:
        self.held[len(self.held)] = True
        return len(self.held) - 1

    def release(self, hold: int) -> None:
        self.held[hold] = False

    def zookeeper_leader(self) -> str | None:
        return self.zookeepers[0]

    def controller(self) -> str | None:
        return self.voters[0] if self.voters else "b1"

    def registered_brokers(self) -> Sequence[str]:
        return [node for node in self.brokers if self.states[node] is NodeState.RUNNING]

    @property
    def view(self) -> PartitionView | None:
        return self.views["t"].get(0)

    @view.setter
    def view(self, view: PartitionView | None) -> None:
        self.views["t"] = {} if view is None else {0: view}

    def topics(self) -> Sequence[str]:
        return list(self.views)

    def partitions(self, topic: str) -> Sequence[PartitionView]:
        return list(self.views.get(topic, {}).values())

    def partition(self, topic: str, partition: int) -> PartitionView | None:
        return self.views.get(topic, {}).get(partition)

    def await_healthy(self, *, deadline_s: float) -> float:
        self.acts.append("await_healthy")
        return 0.0

    def check(self) -> None:
        if self.lab_failure:
            raise LabFailure(self.lab_failure)
