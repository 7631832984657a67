"""What befalls the cluster: seeded, several faults at a time, everything undone in the end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from urteil.suites.simulation.cluster import BROKERS, Cluster, process
from urteil.suites.simulation.disturbances import CUT, SESSION, SLOW
from urteil.suites.simulation.loop import SimulatedLoop
from urteil.suites.simulation.waiting import holds_within
from urteil.suites.simulation.zookeeper import HOST

REBOOT_S = (0.2, 9.0)
"""A machine without power may be back before its session has ended."""
SKEWS_MS = (-3_600_000, -30_000, 30_000, 3_600_000)
LATENCY_S = (0.0003, 0.003)
SLOW_S = (0.2, 1.5)
RECOVERY_S = 60.0
IN_SYNC_S = 3.5
"""For so long at least a replica that hears nothing is in sync."""

PROCESSES = (
    (4, "leader crash"),
    (3, "controller crash"),
    (2, "crash"),
    (2, "crash of two"),
    (2, "blackout"),
    (2, "clean restart"),
    (3, "power cut"),
    (4, "fast failover"),
)
LINKS = (
    (3, "one way cut"),
    (3, "two way cut"),
    (3, "isolated broker"),
    (3, "cut from zookeeper"),
    (2, "cut from its peers"),
    (2, "cut clients"),
    (2, "slow links"),
)
QUORUM = (
    (3, "session expiry"),
    (2, "lost connection"),
    (3, "lost answer"),
)
CLOCKS = ((1, "skewed clock"),)
"""The faults with their weights; each is a method of `Schedule`."""
FAULTS = {name for _, name in (*PROCESSES, *LINKS, *QUORUM, *CLOCKS)}
ALONE = ("power cut", "fast failover")
"""Played with no other fault acting, from health to health."""

_CHOICES: ContextVar[random.Random] = ContextVar("choices")
"""The generator of the fault that is played in this context."""
Action = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that began so many seconds after the first one could. Its seed decides the rest."""

    at_s: float
    name: str
    seed: int


class Schedule:
    """Three independent sources of bad luck: processes, links, and ZooKeeper with the clocks.

    `faults` has what was done. Faults that are given are played instead of drawn ones. A power cut
    is played alone and from full health: more than one machine that loses what it had not synced
    may lose what was acknowledged, as in Apache Kafka.
    """

    def __init__(
        self, loop: SimulatedLoop, cluster: Cluster, rng: random.Random, clients: list[str]
    ) -> None:
        self._loop, self._cluster, self._draws = loop, cluster, rng
        self._clients = clients
        self._cuts: dict[tuple[str, str], None] = {}
        self._calm = asyncio.Event()
        self._calm.set()
        self._busy = 0
        self._is_over = False
        self._began_s = 0.0
        self.partitions = 0
        self.moves_clocks = True
        self.faults: list[Fault] = []
        self.restarts = 0
        self.failed_starts: list[BaseException] = []

    @property
    def _rng(self) -> random.Random:
        return _CHOICES.get()

    async def play(self, duration_s: float, given: Sequence[Fault] | None = None) -> None:
        """For so long; then heal. Given faults have names of `FAULTS`."""
        self._began_s = self._loop.time()
        playing = self._draw_actors() if given is None else [self._repeat(fault) for fault in given]
        actors = [asyncio.ensure_future(each) for each in playing]
        watching = asyncio.ensure_future(self.revive())
        await asyncio.sleep(duration_s)
        self._is_over = True  # what began is played to its end: a power cut most of all
        for actor in actors:
            await actor
        watching.cancel()
        self.heal()

    def _draw_actors(self) -> list[Coroutine[Any, Any, None]]:
        return [
            self._act(PROCESSES, (1.0, 6.0)),
            self._act(LINKS, (1.0, 6.0)),
            self._act((*QUORUM, *(CLOCKS if self.moves_clocks else ())), (1.0, 5.0)),
        ]

    def heal(self) -> None:
        """Links, clocks and processes as they should be."""
        for ends in list(self._cuts):
            self._join(*ends)
        for clock in self._cluster.clocks.values():
            clock.skew_ms = 0
        for broker_id in BROKERS:
            if broker_id not in self._cluster.lives:
                self._cluster.start(broker_id)

    async def restart_in_calm(self) -> None:
        """A controlled shutdown of one broker, and its return, with no fault acting."""
        broker_id = random.Random(self._draws.getrandbits(64)).choice(BROKERS)
        await self._cluster.stop(broker_id)
        self._cluster.start(broker_id)
        await self._comes(lambda: self._cluster.is_healthy(self.partitions))

    async def revive(self) -> None:
        """Start again what ended by itself, for ever: a supervisor."""
        while True:
            await asyncio.sleep(0.5)
            self.restart_ended()

    def restart_ended(self) -> None:
        for broker_id in self._cluster.ended_brokers():
            life = self._cluster.lives[broker_id]
            if life.starting.done() and (error := life.starting.exception()) is not None:
                self.failed_starts.append(error)
            self.restarts += 1
            self._cluster.kill(broker_id)
            self._cluster.start(broker_id)

    async def _act(self, faults: Sequence[tuple[int, str]], pause_s: tuple[float, float]) -> None:
        weights, names = [weight for weight, _ in faults], [name for _, name in faults]
        while True:
            await asyncio.sleep(self._draws.uniform(*pause_s))
            await self._calm.wait()
            if self._is_over:
                return
            (name,) = self._draws.choices(names, weights)
            await self._begin(name, self._draws.getrandbits(64))

    async def _repeat(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at_s)
        await self._calm.wait()
        if not self._is_over:
            await self._begin(fault.name, fault.seed)

    async def _begin(self, name: str, seed: int) -> None:
        self.faults.append(Fault(self._loop.time() - self._began_s, name, seed))
        self._loop.note("fault", name)
        _CHOICES.set(random.Random(seed))
        action: Action = getattr(self, "_" + name.replace(" ", "_"))
        self._busy += 1
        try:
            await (self._alone(action) if name in ALONE else action())
        finally:
            self._busy -= 1

    # processes

    async def _leader_crash(self) -> None:
        leaders = [state.leader for state in self._cluster.states().values()]
        await self._crash_and_restart(
            [leader for leader in leaders if leader in self._cluster.lives][:1]
        )

    async def _controller_crash(self) -> None:
        controller = self._cluster.controller()
        await self._crash_and_restart([] if controller is None else [controller])

    async def _crash(self) -> None:
        await self._crash_and_restart(self._sample_brokers(1))

    async def _crash_of_two(self) -> None:
        await self._crash_and_restart(self._sample_brokers(2))

    async def _blackout(self) -> None:
        await self._crash_and_restart(self._sample_brokers(3))

    def _sample_brokers(self, count: int) -> list[int]:
        alive = list(self._cluster.lives)
        return self._rng.sample(alive, min(count, len(alive)))

    async def _crash_and_restart(self, brokers: list[int]) -> None:
        for broker_id in brokers:
            if broker_id in self._cluster.lives:
                self._cluster.kill(broker_id)
                await asyncio.sleep(self._rng.choice((0.0, 0.1, 1.0, 4.0)))
        for broker_id in brokers:
            await asyncio.sleep(self._rng.choice((0.05, 1.0, 4.0, 8.0)))
            if broker_id not in self._cluster.lives:
                self._cluster.start(broker_id)

    async def _clean_restart(self) -> None:
        for broker_id in self._sample_brokers(1):
            await self._cluster.stop(broker_id)
            await asyncio.sleep(self._rng.uniform(0.1, 2.0))
            self._cluster.start(broker_id)

    async def _power_cut(self) -> None:
        broker_id = self._rng.choice(BROKERS)
        self._cluster.kill(broker_id, power=True)
        await asyncio.sleep(self._rng.uniform(*REBOOT_S))
        self._cluster.start(broker_id)

    async def _fast_failover(self) -> None:
        """Two leaders in a row whose records the next one lacks: more than one epoch must be cut.

        The first successor does not hear of the leader's last records, the other replica not of
        the successor's; all stay in sync for so long.
        """
        fates = {place: self._in_a_row(place) for place in self._cluster.states()}
        fates = {place: fate for place, fate in fates.items() if len(fate) == len(BROKERS)}
        if not fates:
            return
        orderly = [place for place in fates if fates[place][2] == self._cluster.controller()]
        place = self._rng.choice(orderly or list(fates))
        leader, successor, straggler = fates[place]
        deaf = [(process(leader), process(successor)), (process(successor), process(straggler))]
        try:
            self._cut(deaf)
            await asyncio.sleep(self._rng.uniform(1.0, 2.5))
            if orderly:  # clients hear of the successor sooner
                await self._cluster.stop(leader)
            else:
                self._cluster.kill(leader)
            await self._comes(lambda: self._cluster.states()[place].leader == successor)
            inherited = self._end(place, successor)
            await self._comes(lambda: self._end(place, successor) > inherited, IN_SYNC_S)
            self._cluster.kill(successor)
        finally:
            self._uncut(deaf)
        await self._comes(lambda: self._cluster.states()[place].leader == straggler)
        for broker_id in (successor, leader):
            self._cluster.start(broker_id)

    def _in_a_row(self, place: tuple[str, int]) -> tuple[int, ...]:
        """Who leads, who is next, and who after that."""
        leader = self._cluster.states()[place].leader
        return leader, *(replica for replica in self._cluster.replicas(*place) if replica != leader)

    def _end(self, place: tuple[str, int], broker_id: int) -> int:
        """-1 where the broker has no replica of it."""
        partition = self._cluster.lives[broker_id].broker.replicas.partitions.get(place)
        return -1 if partition is None else int(partition.log.log_end_offset)

    async def _alone(self, action: Action) -> None:
        """Play it with no other fault acting, from health to health."""
        self._calm.clear()
        try:
            if await self._is_alone_and_well():
                await action()
                await self._is_alone_and_well()
        finally:
            self._calm.set()

    async def _is_alone_and_well(self) -> bool:
        """Once no other fault is acting and the cluster is healthy."""
        return await self._comes(
            lambda: self._busy == 1 and self._cluster.is_healthy(self.partitions)
        )

    async def _comes(self, condition: Callable[[], bool], within_s: float = RECOVERY_S) -> bool:
        """Wait for it; False when it never comes, which is for the end of the run to find."""
        return await holds_within(condition, within_s, poll_s=0.1)

    # links

    async def _one_way_cut(self) -> None:
        source, target = self._rng.sample(BROKERS, 2)
        await self._cut_for_a_while([(process(source), process(target))])

    async def _two_way_cut(self) -> None:
        first, other = map(process, self._rng.sample(BROKERS, 2))
        await self._cut_for_a_while([(first, other), (other, first)])

    async def _isolated_broker(self) -> None:
        victim = self._victim()
        await self._cut_for_a_while(_both_ways(victim, [*_peers(victim), HOST]))

    async def _cut_from_zookeeper(self) -> None:
        victim = self._victim()
        ends = _both_ways(victim, [HOST])
        await self._cut_for_a_while(self._rng.choice([ends, ends[:1], ends[1:]]))

    async def _cut_from_its_peers(self) -> None:
        victim = self._victim()
        await self._cut_for_a_while(_both_ways(victim, _peers(victim)))

    async def _cut_clients(self) -> None:
        victim = self._victim()
        await self._cut_for_a_while([(victim, client) for client in self._clients])

    async def _slow_links(self) -> None:
        victim = self._victim()
        ends = _both_ways(victim, _peers(victim))
        for source, target in ends:
            self._loop.network.slow(source, target, SLOW_S)
            self._cluster.disturbances.begin(SLOW, source, target)
            self._cuts[source, target] = None
        await self._a_while()
        self._uncut(ends)

    def _victim(self) -> str:
        """A leader more often than not."""
        leaders = [state.leader for state in self._cluster.states().values() if state.leader > 0]
        return process(self._rng.choice([*BROKERS, *leaders]))

    async def _cut_for_a_while(self, ends: list[tuple[str, str]]) -> None:
        self._cut(ends)
        await self._a_while()
        self._uncut(ends)

    def _cut(self, ends: list[tuple[str, str]]) -> None:
        for source, target in ends:
            self._loop.network.cut(source, target)
            self._cluster.disturbances.begin(CUT, source, target)
            self._cuts[source, target] = None

    def _uncut(self, ends: list[tuple[str, str]]) -> None:
        for source, target in ends:
            self._join(source, target)

    def _join(self, source: str, target: str) -> None:
        self._cuts.pop((source, target), None)
        self._loop.network.join(source, target)
        for kind in (CUT, SLOW):
            self._cluster.disturbances.end(kind, source, target)

    async def _a_while(self) -> None:
        await asyncio.sleep(self._rng.choice((0.5, 2.0, 5.0, 10.0)))

    # ZooKeeper and clocks

    async def _session_expiry(self) -> None:
        for broker_id in self._sample_brokers(1):
            self._cluster.disturbances.note(SESSION, process(broker_id))
            session = self._cluster.lives[broker_id].machine.zk
            if session is not None and (known := self._cluster.ensemble.find(session.session_id)):
                self._cluster.ensemble.expire(known)

    async def _lost_connection(self) -> None:
        for broker_id in self._sample_brokers(1):
            self._cluster.disturbances.note(SESSION, process(broker_id))
            if (session := self._cluster.lives[broker_id].machine.zk) is not None:
                session.lose_connection()

    async def _lost_answer(self) -> None:
        controller = self._cluster.controller()
        for broker_id in [controller] if controller is not None else self._sample_brokers(1):
            self._cluster.disturbances.note(SESSION, process(broker_id))
            if (session := self._cluster.lives[broker_id].machine.zk) is not None:
                session.lose_next_answer()

    async def _skewed_clock(self) -> None:
        clock = self._cluster.clocks[self._rng.choice(BROKERS)]
        clock.skew(self._rng.choice(SKEWS_MS))


def _peers(victim: str) -> list[str]:
    return [process(broker) for broker in BROKERS if process(broker) != victim]


def _both_ways(victim: str, others: list[str]) -> list[tuple[str, str]]:
    return [ends for other in others for ends in ((victim, other), (other, victim))]
