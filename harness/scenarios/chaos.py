"""Scenarios whose schedule each seed draws from weighted faults."""

from __future__ import annotations

import msgspec

from urteil.chaos.fault_options import Option
from urteil.chaos.faults import FAULTS
from urteil.chaos.weighted_faults import RandomSchedule, WeightedFault
from urteil.harness.scenario import ClusterSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault
from urteil.harness.scenarios.protocol import IMPATIENT_BROKERS, REQUEST_TIMEOUT_MS
from urteil.harness.scenarios.protocol_apis import STATE_CHANGES
from urteil.harness.scenarios.transactions import CLEANUP, ENDS, copiers

LOAD = WorkloadSpec(topics=(DURABLE,))
PATIENT = WorkloadSpec(topics=(DURABLE,), delivery_timeout_ms=60_000)
SMALL_SEGMENTS = WorkloadSpec(
    topics=(TopicSpec(config={"min.insync.replicas": "2", "segment.bytes": "16384"}),),
    delivery_timeout_ms=60_000,
)
GUARANTEES = (*REPLICATION, "duplicate")
NEW_LEADER = ("election", "isr_shrink")

WEIGHTED_PROCESS_FAULTS = (
    WeightedFault(fault="crash", targets=("leader",), weight=3, brings=NEW_LEADER),
    WeightedFault(fault="crash", targets=("follower", "random"), weight=2, brings=("isr_shrink",)),
    WeightedFault(fault="crash", targets=("controller",), weight=1, brings=("controller",)),
    WeightedFault(fault="crash", targets=("all",), weight=0.5, duration_s=(1.0, 3.0), alone=True),
    WeightedFault(fault="pause", targets=("leader",), weight=2, brings=NEW_LEADER),
    WeightedFault(fault="pause", targets=("follower", "controller", "random"), weight=2),
    WeightedFault(fault="shutdown", targets=("leader", "random"), weight=1.5, brings=NEW_LEADER),
)
"""Faults that end or pause processes, with the events that a long one causes."""

WEIGHTED_NETWORK_FAULTS = (
    WeightedFault(
        fault="partition",
        targets=("followers->leader", "follower->leader", "follower<->leader"),
        weight=3,
        options={"answers_only": (False, True)},
        brings=("isr_shrink",),
    ),
    WeightedFault(fault="partition", targets=("client<->leader",), weight=1),
    WeightedFault(fault="isolate", targets=("leader", "follower", "controller"), weight=2),
    WeightedFault(
        fault="isolate",
        targets=("leader", "controller"),
        weight=2,
        options={"brokers": False, "zookeeper": True},
        brings=NEW_LEADER,
    ),
    WeightedFault(
        fault="isolate", targets=("random",), options={"zookeeper": True, "clients": True}
    ),
    WeightedFault(
        fault="latency",
        targets=("all", "followers->leader"),
        weight=2,
        options={"latency_ms": (50.0, 200.0, 500.0), "jitter_ms": (0.0, 50.0)},
    ),
)
"""Faults that cut or slow links."""

EXCLUDED = ("rolling_restart", "zookeeper_from_zookeeper")
"""Never drawn: the first lasts a minute if nothing heals it, the second needs three ZooKeepers."""


def other_faults(family: str, weighted: tuple[WeightedFault, ...]) -> tuple[WeightedFault, ...]:
    """All other faults of a family, with a low weight and the options of their trials.

    Those of processes are never drawn at the same time as another fault: they restart processes,
    and so would undo it."""
    excluded = {*EXCLUDED, *(choice.fault for choice in weighted)}
    return tuple(
        WeightedFault(
            fault=name,
            targets=(fault.sample,),
            weight=0.5,
            options=dict(fault.sample_options),
            alone=family == "process",
        )
        for name, fault in FAULTS.items()
        if fault.family == family and fault.sample and name not in excluded
    )


PROCESSES = (*WEIGHTED_PROCESS_FAULTS, *other_faults("process", WEIGHTED_PROCESS_FAULTS))
NETWORK = (*WEIGHTED_NETWORK_FAULTS, *other_faults("network", WEIGHTED_NETWORK_FAULTS))

ANCHORS = {"time": 3.0, "acks": 1.0, "election": 2.0, "isr_shrink": 1.0, "controller": 1.0}

CHAOS = Scenario(
    name="chaos",
    about="faults of processes and links drawn by the seed, two at once, some at the next election",
    suites=("chaos",),
    cluster=cluster(),
    workload=LOAD,
    draw=RandomSchedule(choices=(*PROCESSES, *NETWORK), count=6, at_once=2, anchors=ANCHORS),
    duration_s=30.0,
    recovery_deadline_s=60.0,
    guarantees=GUARANTEES,
)

CHAOS_LONG = Scenario(
    name="chaos-long",
    about="nine faults of processes and links drawn by the seed, two at once",
    suites=("chaos",),
    cluster=cluster(),
    workload=LOAD,
    draw=RandomSchedule(choices=(*PROCESSES, *NETWORK), count=9, at_once=2, anchors=ANCHORS),
    duration_s=45.0,
    recovery_deadline_s=60.0,
    guarantees=GUARANTEES,
)

CHAOS_PROCESSES = Scenario(
    name="chaos-processes",
    about="processes killed, stopped and paused by the seed, one at a time",
    suites=("chaos",),
    cluster=cluster(),
    workload=LOAD,
    draw=RandomSchedule(choices=PROCESSES, count=3, anchors={"time": 2.0, "acks": 1.0}),
    duration_s=30.0,
    recovery_deadline_s=60.0,
    guarantees=GUARANTEES,
)

CHAOS_NETWORK = Scenario(
    name="chaos-network",
    about="links cut and slowed by the seed, one at a time",
    suites=("chaos",),
    cluster=cluster(),
    workload=LOAD,
    draw=RandomSchedule(choices=NETWORK, count=3, anchors={"time": 2.0, "acks": 1.0}),
    duration_s=30.0,
    guarantees=GUARANTEES,
    recovery_deadline_s=60.0,
)

DISKS = (
    WeightedFault(fault="power_cut", targets=("leader", "follower"), weight=3),
    WeightedFault(fault="disk_full", targets=("leader", "follower")),
    WeightedFault(fault="disk_readonly", targets=("leader", "follower")),
    WeightedFault(fault="segment_damaged", targets=("follower",)),
    WeightedFault(fault="crash", targets=("leader",)),
)

CHAOS_DISKS = Scenario(
    name="chaos-disks",
    about="power cuts, disks full, read-only or damaged by the seed, one broker at a time",
    suites=("chaos",),
    cluster=ClusterSpec(records_flushes=True),
    workload=SMALL_SEGMENTS,
    draw=RandomSchedule(
        choices=DISKS, count=3, first_s=7.0, duration_s=(5.0, 9.0), pause_s=(6.0, 9.0)
    ),
    duration_s=40.0,
    recovery_deadline_s=60.0,
    guarantees=GUARANTEES,
)

ZOOKEEPER = (
    WeightedFault(fault="crash", targets=("zk1",), weight=2, alone=True),
    WeightedFault(fault="pause", targets=("zk1",), alone=True),
    WeightedFault(
        fault="crash", targets=("zookeeper_majority",), duration_s=(2.0, 6.0), alone=True
    ),
    WeightedFault(
        fault="session_expired", targets=("leader", "controller"), weight=2, duration_s=(1, 2)
    ),
    WeightedFault(fault="controller_deleted", targets=("controller",), duration_s=(1, 2)),
    WeightedFault(
        fault="isolate",
        targets=("leader", "controller"),
        weight=2,
        options={"brokers": False, "zookeeper": True},
        brings=NEW_LEADER,
    ),
    WeightedFault(fault="crash", targets=("leader", "controller"), weight=2, brings=NEW_LEADER),
)
"""Two of the three servers fail at once only as `zookeeper_majority`: the lab reads the leaders
from them."""

CHAOS_ZOOKEEPER = Scenario(
    name="chaos-zookeeper",
    about="ZooKeeper's servers, its sessions and /controller by the seed, with brokers that die",
    suites=("chaos",),
    cluster=ClusterSpec(zookeepers=3),
    workload=PATIENT,
    draw=RandomSchedule(choices=ZOOKEEPER, count=5, at_once=2, anchors=ANCHORS),
    duration_s=30.0,
    recovery_deadline_s=60.0,
    guarantees=GUARANTEES,
)

LATE_MS = 4_000
FRAME_ACTS: dict[str, dict[str, Option | tuple[Option, ...]]] = {
    "lose_request": {},
    "lose_answer": {"goes_on": (False, True)},
    "duplicate_request": {"times": (1, 3)},
    "delay_answer": {"delay_ms": (300, LATE_MS)},
    "close_at": {"moment": ("after request", "before answer")},
}
"""Acts on single frames, with the options that are drawn. LATE_MS exceeds the timeouts of clients
and brokers of `chaos-protocol`."""
FRAMES = (
    *(
        WeightedFault(
            fault=act,
            targets=(change.target,),
            weight=change.weight,
            duration_s=(3.0, 6.0) if change.weight >= 1 else (12.0, 14.0),
            options={"api": change.api, **options},
        )
        for change in STATE_CHANGES.values()
        for act, options in FRAME_ACTS.items()
        if change.weight
    ),
    WeightedFault(
        fault="answer_error",
        targets=("client->leader",),
        weight=2,
        options={"api": "Produce", "error": ("NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT")},
    ),
)
"""Rules on requests and answers of all APIs that the clients of `chaos-protocol`, or consequences
of its faults, use. Rules wait longer for rare ones."""

CHAOS_PROTOCOL = Scenario(
    name="chaos-protocol",
    about="single requests and answers of all APIs lost, repeated, late or cut by the seed, four "
    "rules at once, under transactions, a copying group, topics that come and go, and writers that "
    "die",
    suites=(),
    cluster=ClusterSpec(config=IMPATIENT_BROKERS | CLEANUP),
    workload=msgspec.structs.replace(copiers(), request_timeout_ms=REQUEST_TIMEOUT_MS),
    faults=tuple(
        spec
        for at_s in range(6, 36, 7)
        for spec in (
            fault("topic_churn", "topic", at_s, 2, count=2),
            fault("kill_client", "transactional", at_s + 3, 1),
            fault("kill_client", "copier", at_s + 3.5, 1),
        )
    ),
    draw=RandomSchedule(choices=FRAMES, at_once=4, pause_s=(0.5, 2.0)),
    duration_s=46.0,
    recovery_deadline_s=60.0,
    guarantees=(*REPLICATION, *ENDS, "offsets_not_atomic", "processed_twice"),
)
