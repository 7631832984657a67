"""Network partitions of every shape, and slow links."""

from __future__ import annotations

import msgspec

from urteil.harness.scenario import Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, LAX, REPLICATION, cluster, fault

LOAD = WorkloadSpec(topics=(DURABLE,))
ELECTIONS = ("unclean_leader", "epoch_went_back")

ISOLATE_LEADER = Scenario(
    name="isolate-leader",
    about="a leader cut off from all brokers, but not from ZooKeeper and clients: it acknowledges "
    "nothing that could be lost",
    suites=("replication",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("isolate", "leader", 5, 9),),
    guarantees=(*REPLICATION, "duplicate", "end_below_ack"),
)

ISOLATE_ZOOKEEPER = Scenario(
    name="isolate-zookeeper",
    about="a leader cut off from ZooKeeper alone: its session ends while it reaches all brokers",
    suites=("elections",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("isolate", "leader", 5, 10, brokers=False, zookeeper=True),),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
)

ISOLATE_BROKER = Scenario(
    name="isolate-broker",
    about="a leader cut off from everything, clients included: the majority continues",
    suites=("elections",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("isolate", "leader", 5, 15, zookeeper=True, clients=True),),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS, "no_progress"),
    survives=True,
)

LONE_LEADER = Scenario(
    name="lone-leader",
    about="min ISR 1, a leader cut off from brokers and ZooKeeper: the controller cannot confirm "
    "that it is in sync alone, so it may acknowledge nothing to the clients that it reaches",
    suites=("replication",),
    cluster=cluster(min_insync_replicas="1"),
    workload=WorkloadSpec(topics=(LAX,), request_timeout_ms=10_000, delivery_timeout_ms=30_000),
    faults=(fault("isolate", "leader", 5, 10, zookeeper=True),),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
)

SLOW_LINKS = Scenario(
    name="slow-links",
    about="200 ms and jitter on every link, ZooKeeper's and the clients' too",
    suites=("replication",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("latency", "all", 4, 12, latency_ms=200, jitter_ms=50, clients=True),),
    guarantees=(*REPLICATION, "duplicate"),
    duration_s=22.0,
)

BRIDGE = Scenario(
    name="bridge",
    about="the two followers do not see each other, the leader sees both",
    suites=("network",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("bridge", "leader", 5, 9),),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
    duration_s=20.0,
)

RING = Scenario(
    name="ring",
    about="every broker reaches a majority of them, no two the same one",
    suites=("network",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("ring", "all", 5, 9),),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
    duration_s=20.0,
)

CLIENT_FROM_LEADER = Scenario(
    name="client-from-leader",
    about="clients do not reach a leader that all brokers reach: no other broker is elected, and "
    "nothing is lost or duplicated",
    suites=("network",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("client_from_leader", "leader", 5, 9),),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
    duration_s=20.0,
)

ZOOKEEPER_SPLIT = Scenario(
    name="zookeeper-split",
    about="the leader of three ZooKeepers is cut off from the others; brokers reach all of them: "
    "sessions move",
    suites=("network",),
    cluster=msgspec.structs.replace(cluster(), zookeepers=3),
    workload=LOAD,
    faults=(fault("zookeeper_from_zookeeper", "zookeeper_leader", 5, 10),),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
    duration_s=22.0,
)
