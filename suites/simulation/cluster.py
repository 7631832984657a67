"""Three brokers and their ZooKeeper in one process, with the power to take any of them down."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from simloop._net import _current_host

from urteil.broker.base.offload import Offload
from urteil.broker.broker import Broker
from urteil.broker.config.broker_config import load_config
from urteil.broker.environment import Environment
from urteil.broker.zookeeper.znodes import decode_state
from urteil.harness.racks import rack_properties
from urteil.suites.simulation.disturbances import DOWN, Disturbances, Stop
from urteil.suites.simulation.loop import SimulatedLoop
from urteil.suites.simulation.session import SimulatedSession
from urteil.suites.simulation.storage import Disk, DiskStorage
from urteil.suites.simulation.zookeeper import HOST, Ensemble

BROKERS = (1, 2, 3)
PORT = 9092
STOP_S = 60.0
DELETED = ".deleted"
READING_S = 1e-9
EPOCH_MS = 1_700_000_000_000
PROPERTIES = {
    "zookeeper.connect": f"{HOST}:2181",
    "zookeeper.session.timeout.ms": "3000",
    "log.dirs": "/data",
    "default.replication.factor": "3",
    "num.partitions": "3",
    "min.insync.replicas": "2",
    "auto.create.topics.enable": "false",
    "replica.lag.time.max.ms": "4000",
    "replica.socket.timeout.ms": "4000",
    "controller.socket.timeout.ms": "4000",
    "request.timeout.ms": "4000",
    "controlled.shutdown.retry.backoff.ms": "500",
    "leader.imbalance.check.interval.seconds": "15",
    "log.segment.bytes": "20000",
    "log.retention.ms": "-1",
    "log.flush.offset.checkpoint.interval.ms": "10000",
    "connections.max.idle.ms": "-1",
}


class Clock:
    """A machine's wall clock, which may be wrong, and the loop's time, which is not."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.skew_ms = 0
        self.was_wrong = False

    def skew(self, skew_ms: int) -> None:
        self.skew_ms, self.was_wrong = skew_ms, True

    def now_ms(self) -> int:
        return EPOCH_MS + self.skew_ms + int(self._loop.time() * 1000)

    def monotonic_ms(self) -> float:
        """A nanosecond later than the loop's time: a timer for `due_ms / 1000` finds its time over,
        however the division was rounded, and is not set again for the same moment, for ever."""
        return (self._loop.time() + READING_S) * 1000.0


class Background:
    """The thread for the disk: one job after another, a little later."""

    def __init__(self, loop: SimulatedLoop, rng: random.Random) -> None:
        self._loop, self._rng = loop, rng
        self._jobs: list[Callable[[], Any]] = []

    def submit(self, job: Callable[[], Any]) -> None:
        self._jobs.append(job)
        self._loop.call_later(self._rng.uniform(0.0, 0.02), self._run_one)

    def _run_one(self) -> None:
        if self._jobs:
            self._jobs.pop(0)()

    def shutdown(self) -> None:
        while self._jobs:
            self._run_one()


class SimulatedMachine(Environment):
    """What one life of a broker has."""

    def __init__(self, cluster: Cluster, process: str, host: str) -> None:
        self._cluster, self._process, self._host = cluster, process, host
        self.storage = DiskStorage(cluster.disks[process])  # type: ignore[assignment]
        self.zk: SimulatedSession | None = None
        self.has_ended = False

    def session(self, connect: str, timeout_ms: int, resolve: Callable[[str], str]) -> Any:
        cluster = self._cluster
        self.zk = SimulatedSession(
            cluster.loop, cluster.ensemble, self._process, self._host, timeout_ms
        )
        return self.zk

    def background(self) -> Any:
        return Background(self._cluster.loop, self._cluster.rng)

    def offload(self, threads: int) -> Offload:
        return Offload()

    def end(self) -> None:
        self.has_ended = True
        self._cluster.loop.note("halt", self._host)


@dataclass(slots=True)
class Life:
    """One life of a broker."""

    host: str
    broker: Broker
    machine: SimulatedMachine
    starting: asyncio.Task[None]


@dataclass(slots=True)
class Cluster:
    """Brokers by id; `lives` has those that run."""

    loop: SimulatedLoop
    rng: random.Random
    properties: Mapping[str, str | None] = field(default_factory=dict)
    """In addition to `PROPERTIES`; None is the default of a setting that is there."""
    has_racks: bool = False
    """Each broker is in a rack of its own."""
    ensemble: Ensemble = field(init=False)
    disks: dict[str, Disk] = field(default_factory=dict)
    clocks: dict[int, Clock] = field(default_factory=dict)
    lives: dict[int, Life] = field(default_factory=dict)
    bad_stops: list[str] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    disturbances: Disturbances = field(init=False)

    def __post_init__(self) -> None:
        self.ensemble = Ensemble(self.loop)
        self.disturbances = Disturbances(self.loop.time)
        for broker_id in BROKERS:
            clock = self.clocks[broker_id] = Clock(self.loop)
            name = process(broker_id)
            self.disks[name] = Disk(name, self.loop.note, clock.now_ms)

    def start(self, broker_id: int) -> None:
        """Begin a new life; it is up when its task is done."""
        name = process(broker_id)
        self.disturbances.end(DOWN, name)
        host = self.loop.network.born(name)
        machine = SimulatedMachine(self, name, host)
        given: dict[str, str | None] = {
            **PROPERTIES,
            **self.properties,
            **(rack_properties(broker_id) if self.has_racks else {}),
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://{name}:{PORT}",
        }
        properties = {key: value for key, value in given.items() if value is not None}
        token = _current_host.set(host)
        try:
            broker = Broker(
                load_config(properties),
                self.clocks[broker_id],  # type: ignore[arg-type]
                random.Random(self.rng.getrandbits(64)),
                machine,
            )
            starting = self.loop.create_task(broker.start())
        finally:
            _current_host.reset(token)
        self.lives[broker_id] = Life(host, broker, machine, starting)

    def kill(self, broker_id: int, *, power: bool = False) -> None:
        """SIGKILL; with `power` the machine dies, and with it what was not synced."""
        life = self.lives.pop(broker_id)
        self.disturbances.begin(DOWN, process(broker_id))
        self.loop.network.kill(life.host, silent=power)
        life.machine.storage.is_alive = False  # type: ignore[attr-defined]
        if power:
            self.disks[process(broker_id)].lose_power(self.rng)

    async def stop(self, broker_id: int) -> None:
        """A controlled shutdown, to its end; one without an end, or with an exception, is noted in
        `bad_stops`. While it starts, a broker just ends."""
        if not self.lives[broker_id].starting.done():
            return self.kill(broker_id)
        life = self.lives.pop(broker_id)
        began_s = self.loop.time()
        self.disturbances.begin(DOWN, process(broker_id))
        stopping = self.loop.network.host(life.host).create_task(life.broker.stop())
        await asyncio.wait([stopping], timeout=STOP_S)
        if not stopping.done():
            self.bad_stops.append(f"broker {broker_id} did not stop within {STOP_S:.0f} s")
        elif (error := stopping.exception()) is not None:
            self.bad_stops.append(f"broker {broker_id} could not stop: {error!r}")
        self.stops.append(Stop(broker_id, began_s, self.loop.time()))
        self.loop.network.kill(life.host, silent=False)
        life.machine.storage.is_alive = False  # type: ignore[attr-defined]

    def deleted_files(self) -> set[tuple[int, str]]:
        """Broker and path of the files that are marked for deletion."""
        return {
            (broker_id, path)
            for broker_id in BROKERS
            for path in self.disks[process(broker_id)].files
            if path.endswith(DELETED)
        }

    def ended_brokers(self) -> list[int]:
        """Brokers that halted by themselves, or could not start."""
        return [
            broker_id
            for broker_id, life in self.lives.items()
            if life.machine.has_ended
            or (life.starting.done() and life.starting.exception() is not None)
        ]

    def controller(self) -> int | None:
        for broker_id, life in self.lives.items():
            if life.broker.controller.is_active:
                return broker_id
        return None

    def states(self) -> dict[tuple[str, int], Any]:
        """The state of every partition as ZooKeeper has it now."""
        states = {}
        for topic in self.ensemble.children("/brokers/topics"):
            base = f"/brokers/topics/{topic}/partitions"
            if self.ensemble.exists(base) is None:
                continue
            for number in self.ensemble.children(base):
                if self.ensemble.exists(f"{base}/{number}/state") is not None:
                    data, stat = self.ensemble.get(f"{base}/{number}/state")
                    states[topic, int(number)] = decode_state(data, stat.version)
        return states

    def replicas(self, topic: str, partition: int) -> list[int]:
        """In the order in which they are preferred."""
        data, _ = self.ensemble.get(f"/brokers/topics/{topic}")
        return list(json.loads(data)["partitions"][str(partition)])

    def topic_configs(self, topic: str) -> dict[str, str]:
        data, _ = self.ensemble.get(f"/config/topics/{topic}")
        return dict(json.loads(data)["config"])

    def is_healthy(self, partitions: int) -> bool:
        """All brokers are up and registered, so many partitions are there, and every one is led and
        has all replicas in sync."""
        states = self.states()
        return (
            len(self.lives) == len(BROKERS)
            and all(life.starting.done() for life in self.lives.values())
            and len(self.ensemble.children("/brokers/ids")) == len(BROKERS)
            and self.controller() is not None
            and len(states) >= partitions
            and all(
                state.leader > 0 and len(state.isr) == len(self.replicas(*place))
                for place, state in states.items()
            )
        )


def process(broker_id: int) -> str:
    return f"b{broker_id}"
