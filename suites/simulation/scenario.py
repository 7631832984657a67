"""One seed from the first broker's start to the verdict."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from urteil.suites.simulation import checks
from urteil.suites.simulation.checks import ROWS, CheckError, Finding, check_error
from urteil.suites.simulation.client import Client
from urteil.suites.simulation.cluster import BROKERS, PROPERTIES, Cluster, process
from urteil.suites.simulation.evidence import (
    Evidence,
    Glimpse,
    Place,
    Promises,
    read_replicas,
)
from urteil.suites.simulation.history import History
from urteil.suites.simulation.loop import SimulatedLoop
from urteil.suites.simulation.mixes import MIXES, REPLICATION, TOPIC, Scale
from urteil.suites.simulation.readers import Reader
from urteil.suites.simulation.rows import rows_of
from urteil.suites.simulation.schedule import LATENCY_S, Fault, Schedule
from urteil.suites.simulation.waiting import holds_within

GLIMPSE_S = 0.2
SHOWN = 3
STARTING_S = 60.0


@dataclass(slots=True)
class Run:
    """What came of a seed."""

    seed: int
    mix: str
    scale: Scale
    findings: list[Finding] = field(default_factory=list)
    errors: list[CheckError] = field(default_factory=list)
    """Checks that failed: the run is not judged by them."""
    trace: str = ""
    events: int = 0
    virtual_s: float = 0.0
    real_s: float = 0.0
    faults: list[Fault] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)
    """Those that produce, commit or write transactions."""
    restarts: int = 0
    """Of brokers that ended by themselves."""
    outcomes: Counter[str] = field(default_factory=Counter)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Its evidence by table, if its faults were drawn apart."""

    def guarantees(self) -> set[str]:
        return {finding.guarantee for finding in self.findings}

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed} of {self.mix}: {len(self.findings)} findings, "
            f"{self.virtual_s:.0f} virtual s in {self.real_s:.1f} s, "
            f"calls {dict(self.outcomes)}, {self.restarts} restarts, "
            f"faults {dict(Counter(fault.name for fault in self.faults))}",
            *(f"  {line}" for line in self._first_sentences()),
            *(f"  the lab failed in {each.check}: {each.error}" for each in self.errors),
            f"  again: urteil simulate --seeds {self.seed} --mix {self.mix}",
        ]
        return "\n".join(lines)

    def _first_sentences(self) -> Iterator[str]:
        """The first findings of every guarantee."""
        by_guarantee: dict[str, list[str]] = {}
        for finding in self.findings:
            by_guarantee.setdefault(finding.guarantee, []).append(finding.sentence)
        for guarantee, sentences in by_guarantee.items():
            for sentence in sentences[:SHOWN]:
                yield f"{guarantee}: {sentence[-1500:]}"
            if len(sentences) > SHOWN:
                yield f"{guarantee}: {len(sentences) - SHOWN} more"


def simulate(
    seed: int,
    scale: Scale | None = None,
    draws: random.Random | None = None,
    mix: str = REPLICATION,
    faults: Sequence[Fault] | None = None,
) -> Run:
    """Play a seed of a mix and judge it. Never raises for what the brokers do, nor for a check that
    fails.

    With `draws` the faults are drawn from it, and the run has its rows of evidence. `faults` are
    played instead of drawn ones.
    """
    began = time.process_time()
    loop = SimulatedLoop(seed)
    loop.network.set_defaults(latency=LATENCY_S)
    run = Run(seed, mix, scale or MIXES[mix].scale)
    errors = _Tracebacks()
    logger = logging.getLogger()
    logger.addHandler(errors)
    _keep_modules()
    gc.disable()  # when a cycle is collected must not matter, and it is quicker so
    try:
        evidence = loop.run_until_complete(
            _play(loop, run, draws or random.Random(f"{seed}:faults"), faults)
        )
        run.trace, run.events = loop.trace_of_all.hash(), loop.trace_of_all.count
        run.virtual_s = loop.time()
        evidence.troubles += errors.texts
        run.findings, run.errors = checks.judge(evidence)
        if draws is not None:
            try:
                run.rows = rows_of(evidence)
            except Exception as error:
                run.errors.append(check_error(ROWS, error))
    finally:
        logger.removeHandler(errors)
        loop.end()
        gc.enable()
    run.real_s = time.process_time() - began
    return run


@functools.cache
def _keep_modules() -> None:
    """What is imported stays: collections of later garbage need not look at it."""
    gc.collect()
    gc.freeze()


class _Tracebacks(logging.Handler):
    """Keeps what a broker logged with a traceback: there should be none."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.texts.append(logging.Formatter().format(record))


async def _play(
    loop: SimulatedLoop,
    run: Run,
    draws: random.Random,
    faults: Sequence[Fault] | None,
) -> Evidence:
    mix, scale, rng = MIXES[run.mix], run.scale, random.Random(f"{run.seed}:scenario")
    cluster, history = Cluster(loop, rng, mix.properties, mix.has_racks), History()
    evidence = Evidence(history, cluster.ensemble.history, {}, {}, [], int(
        PROPERTIES["min.insync.replicas"]))  # fmt: skip
    for broker_id in BROKERS:
        cluster.start(broker_id)
    await _until(lambda: _are_brokers_registered(cluster), STARTING_S, "three brokers registered")
    admin = Client(loop, "admin", history, rng.getrandbits(64))
    async with asyncio.timeout(STARTING_S):
        configs = mix.first_configs or mix.configs
        await admin.host.create_task(admin.create_topic(TOPIC, scale.partitions, configs))
    await _until(lambda: cluster.is_healthy(scale.partitions), STARTING_S, "a healthy cluster")
    looking = asyncio.ensure_future(_look(loop, cluster, evidence.glimpses))
    load = mix(loop, history, rng, scale)
    run.clients = load.names[: len(load.producing)]
    schedule = Schedule(loop, cluster, draws, load.names)
    schedule.partitions = scale.partitions
    schedule.moves_clocks = mix.moves_clocks
    await schedule.play(scale.faults_s, faults)
    evidence.healed_s = loop.time()
    reviving = asyncio.ensure_future(schedule.revive())
    await _recover(loop, cluster, load.producing, scale, evidence)
    calm_s, files = loop.time(), cluster.deleted_files()
    await load.settle(evidence)
    if mix.restarts_in_calm:
        await schedule.restart_in_calm()
    if mix.deletes_files_soon:
        evidence.lasting_files = sorted(files & cluster.deleted_files())
    for task in (*load.following, looking, reviving):
        if task.done():
            task.result()
        task.cancel()
    await _read_all(cluster, load.final_readers(), scale, evidence)
    last_configs = cluster.topic_configs(TOPIC) if mix.first_configs else {}
    evidence.promises = Promises(mix.configs | last_configs, mix.late_s, calm_s, loop.time())
    evidence.troubles += [
        f"a broker could not start: {error!r}"
        for error in schedule.failed_starts
        if not isinstance(error, TimeoutError)
    ]
    evidence.troubles += cluster.bad_stops
    evidence.disturbances, evidence.stops = cluster.disturbances(), cluster.stops
    run.faults, run.restarts = schedule.faults, schedule.restarts
    run.outcomes = Counter(send.outcome for send in history.sends)
    run.outcomes.update(commit.outcome for commit in history.commits)
    run.outcomes.update(f"{act.kind} {act.outcome}" for act in history.acts)
    run.outcomes.update(question.outcome for question in history.questioned)
    return evidence


async def _until(condition: Callable[[], bool], within_s: float, what: str) -> None:
    if not await holds_within(condition, within_s, poll_s=0.05):
        raise TimeoutError(f"{what}: not within {within_s:.0f} s of the start")


def _are_brokers_registered(cluster: Cluster) -> bool:
    ids = "/brokers/ids"
    return cluster.ensemble.exists(ids) is not None and len(cluster.ensemble.children(ids)) == 3


async def _look(loop: SimulatedLoop, cluster: Cluster, glimpses: list[Glimpse]) -> None:
    """What each broker holds of the partitions it leads, now and again."""
    while True:
        await asyncio.sleep(GLIMPSE_S)
        for broker_id, life in cluster.lives.items():
            replicas = getattr(life.broker, "replicas", None)
            for place, partition in replicas.partitions.items() if replicas else ():
                if partition.is_leader:
                    isr = partition.isr
                    glimpses.append(
                        Glimpse(
                            loop.time(),
                            broker_id,
                            place,
                            partition.leader_epoch,
                            tuple(sorted(isr.committed)),
                            isr.is_in_flight,
                            partition.log.log_start_offset,
                        )
                    )


async def _recover(
    loop: SimulatedLoop,
    cluster: Cluster,
    producing: list[asyncio.Task[None]],
    scale: Scale,
    evidence: Evidence,
) -> None:
    """Health again, and every send settled, within `recovery_s`."""

    def has_settled() -> bool:
        if evidence.healthy_s is None and cluster.is_healthy(scale.partitions):
            evidence.healthy_s = loop.time()
        return all(task.done() for task in producing) and cluster.is_healthy(scale.partitions)

    has_recovered = await holds_within(has_settled, scale.recovery_s, poll_s=0.2)
    if not has_recovered:
        states = {place: (state.leader, state.isr) for place, state in cluster.states().items()}
        open_sends = [send for send in evidence.history.sends if send.end_s < 0 or
                      (send.outcome == "info" and send.producer_id >= 0)]  # fmt: skip
        evidence.troubles.append(
            f"{scale.recovery_s:.0f} s after healing: states {states}, up "
            f"{sorted(cluster.lives)}, controller {cluster.controller()}, registered "
            f"{cluster.ensemble.children('/brokers/ids')}, unsettled {open_sends[:3]}"
        )
    for task in producing:
        if task.done():
            task.result()
        else:
            task.cancel()


async def _read_all(
    cluster: Cluster, readers: list[Reader], scale: Scale, evidence: Evidence
) -> None:
    for reader in readers:
        for n in range(scale.partitions):
            await _sweep(reader, n, scale, evidence)
        evidence.history.polls += reader.history.polls
        evidence.history.answers += reader.history.answers
    await holds_within(lambda: _caught_up(cluster), scale.recovery_s, poll_s=0.2)
    replicas_of = {place: cluster.replicas(*place) for place in cluster.states()}
    for broker_id, life in cluster.lives.items():
        replicas = getattr(life.broker, "replicas", None)
        hosted = replicas.partitions.items() if replicas else ()
        logs: dict[Place, Any] = {place: partition.log for place, partition in hosted}
        disk = cluster.disks[process(broker_id)]
        for place, replica in read_replicas(disk, broker_id, logs).items():
            if broker_id in replicas_of.get(place, ()):
                evidence.replicas.setdefault(place, []).append(replica)
        evidence.folders[broker_id] = sorted(disk.directories)
        if cluster.clocks[broker_id].was_wrong:
            evidence.brokers_of_wrong_clocks.add(broker_id)


async def _sweep(reader: Reader, n: int, scale: Scale, evidence: Evidence) -> None:
    """The final pass of a reader over a partition."""
    reader.reads.clear()
    evidence.swept_s[reader.name, (TOPIC, n)] = reader.now_s()
    sweeping = reader.host.create_task(reader.sweep(TOPIC, n))
    await asyncio.wait([sweeping], timeout=scale.recovery_s)
    position = end = 0
    if not sweeping.done():
        sweeping.cancel()
        evidence.broken_off.add((reader.name, (TOPIC, n)))
        evidence.troubles.append(f"partition {n} could not be read")
    else:
        begin, position, end = sweeping.result()
        evidence.begins[reader.name, (TOPIC, n)] = begin
        if position < end:
            evidence.troubles.append(f"partition {n} ended at {position} of {end}")
    if reader.is_committed:
        evidence.committed[TOPIC, n] = [*reader.reads], end
    else:
        evidence.final[TOPIC, n] = [*reader.reads]


def _caught_up(cluster: Cluster) -> bool:
    ends: dict[Place, set[tuple[int, int]]] = {}
    for life in cluster.lives.values():
        replicas = getattr(life.broker, "replicas", None)
        for place, partition in replicas.partitions.items() if replicas else ():
            ends.setdefault(place, set()).add(
                (partition.log.log_end_offset, partition.log.high_watermark)
            )
    return all(len(end) == 1 for end in ends.values())
