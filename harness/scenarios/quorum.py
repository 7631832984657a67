"""Failures of KRaft's quorum: crashes, silence, cut links, fenced brokers, lost power.

Most clusters have three controllers with nodes of their own, so that a fault on the quorum leaves
the brokers alone. With three brokers as the quorum, one crash takes a leader from both.
"""

from __future__ import annotations

from urteil.harness.scenario import ClusterSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, fault

TARGET = "kafka:4.4.0"
LOAD = WorkloadSpec(topics=(DURABLE,))
PATIENT = WorkloadSpec(topics=(DURABLE,), delivery_timeout_ms=60_000)
APART = ClusterSpec(controllers=3)
FIVE = ClusterSpec(controllers=5)
COMBINED = ClusterSpec()
ELECTIONS = ("unclean_leader", "epoch_went_back", "two_leaders", "quorum_log")
ALL = (*REPLICATION, "duplicate", *ELECTIONS)

QUORUM_LEADER = Scenario(
    name="quorum-leader",
    about="the quorum's leader dies, then a leader of partitions: the next controller elects",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(fault("crash", "quorum_leader", 5, 12), fault("crash", "leader", 7, 10)),
    guarantees=ALL,
    target=TARGET,
)

QUORUM_FOLLOWER = Scenario(
    name="quorum-follower",
    about="a follower of the quorum dies and returns, then the leader: it has the whole log",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(
        fault("crash", "quorum_follower", 4, 6),
        fault("crash", "quorum_leader", 13, 8),
        fault("crash", "leader", 15, 6),
    ),
    guarantees=ALL,
    target=TARGET,
)

QUORUM_MAJORITY = Scenario(
    name="quorum-majority",
    about="two of three controllers die beyond every broker's session: brokers continue, no "
    "broker is fenced before a controller can decide it",
    suites=("quorum",),
    cluster=APART,
    workload=PATIENT,
    faults=(fault("crash", "quorum_majority", 5, 8),),
    guarantees=ALL,
    recovery_deadline_s=60.0,
    target=TARGET,
)

QUORUM_PAUSE = Scenario(
    name="quorum-pause",
    about="all controllers stand still beyond every session, then a broker dies",
    suites=("quorum",),
    cluster=APART,
    workload=PATIENT,
    faults=(fault("pause", "quorum", 5, 7), fault("crash", "leader", 18, 7)),
    guarantees=ALL,
    duration_s=30.0,
    recovery_deadline_s=60.0,
    target=TARGET,
)

QUORUM_LEADER_PAUSE = Scenario(
    name="quorum-leader-pause",
    about="the quorum's leader stands still, is deposed, and continues: epochs fence it",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(fault("pause", "quorum_leader", 5, 9), fault("crash", "leader", 8, 10)),
    guarantees=ALL,
    target=TARGET,
)

QUORUM_LEADER_ISOLATED = Scenario(
    name="quorum-leader-isolated",
    about="the quorum's leader is cut off from controllers and brokers: it resigns, and what it "
    "alone has is overwritten",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(fault("isolate", "quorum_leader", 5, 10), fault("crash", "leader", 8, 9)),
    guarantees=ALL,
    target=TARGET,
)

QUORUM_LEADER_FROM_VOTERS = Scenario(
    name="quorum-leader-from-voters",
    about="the quorum's leader reaches all brokers and no controller: it may decide nothing",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(
        fault("partition", "quorum_leader<->quorum", 5, 10),
        fault("crash", "leader", 6, 10),
    ),
    guarantees=ALL,
    target=TARGET,
)

QUORUM_ONE_WAY = Scenario(
    name="quorum-one-way",
    about="a controller cannot fetch from the leader, which reaches it: its candidacies disturb no "
    "majority",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(
        fault("partition", "quorum_follower->quorum_leader", 4, 12),
        fault("crash", "leader", 8, 9),
    ),
    guarantees=ALL,
    target=TARGET,
)

QUORUM_BRIDGE = Scenario(
    name="quorum-bridge",
    about="two controllers, the leader among them, do not see each other; the third sees both",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(fault("bridge", "quorum_follower", 5, 10), fault("crash", "leader", 8, 9)),
    guarantees=ALL,
    target=TARGET,
)

QUORUM_RING = Scenario(
    name="quorum-ring",
    about="each of five controllers reaches a majority, no two the same one",
    suites=("quorum",),
    cluster=FIVE,
    workload=LOAD,
    faults=(fault("ring", "quorum", 5, 10), fault("crash", "leader", 8, 9)),
    guarantees=ALL,
    target=TARGET,
)

QUORUM_POWER_CUT = Scenario(
    name="quorum-power-cut",
    about="the quorum's leader loses power, then a leader of partitions with what it had not "
    "flushed",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(fault("power_cut", "quorum_leader", 5, 8), fault("power_cut", "leader", 7, 9)),
    guarantees=ALL,
    target=TARGET,
)

QUORUM_CRASH_LOOP = Scenario(
    name="quorum-crash-loop",
    about="a controller dies again and again while a leader of partitions dies",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(fault("crash_loop", "quorum_leader", 4, 12), fault("crash", "leader", 8, 9)),
    guarantees=ALL,
    target=TARGET,
)

BROKER_FENCED = Scenario(
    name="broker-fenced",
    about="a leader stands still until the controller fences it, and continues to serve",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(fault("fence", "leader", 5, 9),),
    guarantees=ALL,
    target=TARGET,
)

FENCED_BY_SUCCESSOR = Scenario(
    name="fenced-by-successor",
    about="the quorum's leader dies, and its successor fences a leader that stands still",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(fault("crash", "quorum_leader", 4, 14), fault("fence", "leader", 5, 11)),
    guarantees=ALL,
    target=TARGET,
)

LEADER_FROM_QUORUM = Scenario(
    name="leader-from-quorum",
    about="a leader reaches all brokers and clients and no controller: it is fenced while it "
    "serves, and acknowledges nothing that could be lost",
    suites=("quorum",),
    cluster=APART,
    workload=LOAD,
    faults=(fault("partition", "leader->quorum", 5, 11),),
    guarantees=ALL,
    target=TARGET,
)

COMBINED_LEADERS = Scenario(
    name="combined-leaders",
    about="three brokers are the quorum: its leader dies, then a leader of partitions stands still",
    suites=("quorum",),
    cluster=COMBINED,
    workload=LOAD,
    faults=(fault("crash", "quorum_leader", 4, 8), fault("fence", "leader", 15, 7)),
    guarantees=ALL,
    duration_s=30.0,
    target=TARGET,
)
