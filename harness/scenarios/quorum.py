"""Failures of KRaft's quorum: crashes, silence, cut links, fenced brokers, lost power.

Most clusters have three controllers with nodes of their own, so that a fault on the quorum does not
affect the brokers. If three brokers are the quorum, one crash can stop a leader of both.
"""

from __future__ import annotations

from urteil.harness.scenario import DYNAMIC, ClusterSpec, FaultSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, fault

TARGET = "kafka:4.4.0"
LOAD = WorkloadSpec(topics=(DURABLE,))
PATIENT = WorkloadSpec(topics=(DURABLE,), delivery_timeout_ms=60_000)
APART = ClusterSpec(controllers=3)
FIVE = ClusterSpec(controllers=5)
COMBINED = ClusterSpec()
ELECTIONS = ("unclean_leader", "epoch_went_back", "two_leaders", "quorum_log", "quorum_votes")
ALL = (*REPLICATION, "duplicate", *ELECTIONS)


def quorum_scenario(
    *,
    name: str,
    about: str,
    faults: tuple[FaultSpec, ...],
    suites: tuple[str, ...] = ("quorum",),
    cluster: ClusterSpec = APART,
    workload: WorkloadSpec = LOAD,
    besides: tuple[str, ...] = (),
    at_once: int | None = None,
    duration_s: float = 25.0,
    recovery_deadline_s: float = 30.0,
) -> Scenario:
    """A scenario of the suite: a KRaft cluster, which keeps the guarantees of replication and
    elections, and those of `besides`."""
    return Scenario(
        name=name,
        about=about,
        suites=suites,
        cluster=cluster,
        workload=workload,
        faults=faults,
        at_once=at_once,
        guarantees=(*ALL, *besides),
        duration_s=duration_s,
        recovery_deadline_s=recovery_deadline_s,
        target=TARGET,
    )


QUORUM_LEADER = quorum_scenario(
    name="quorum-leader",
    about="the quorum's leader dies, then a leader of partitions: the next controller elects",
    faults=(fault("crash", "quorum_leader", 5, 12), fault("crash", "leader", 7, 10)),
)

QUORUM_FOLLOWER = quorum_scenario(
    name="quorum-follower",
    about="a follower of the quorum dies and returns, then the leader: it has the whole log",
    faults=(
        fault("crash", "quorum_follower", 4, 6),
        fault("crash", "quorum_leader", 13, 8),
        fault("crash", "leader", 15, 6),
    ),
)

QUORUM_MAJORITY = quorum_scenario(
    name="quorum-majority",
    about="two of three controllers die beyond every broker's session: brokers continue, no "
    "broker is fenced before a controller can decide it",
    workload=PATIENT,
    faults=(fault("crash", "quorum_majority", 5, 8),),
    recovery_deadline_s=60.0,
)

QUORUM_PAUSE = quorum_scenario(
    name="quorum-pause",
    about="all controllers stand still beyond every session, then a broker dies",
    workload=PATIENT,
    faults=(fault("pause", "quorum", 5, 7), fault("crash", "leader", 18, 7)),
    duration_s=30.0,
    recovery_deadline_s=60.0,
)

QUORUM_LEADER_PAUSE = quorum_scenario(
    name="quorum-leader-pause",
    about="the quorum's leader stands still, is deposed, and continues: epochs fence it",
    faults=(fault("pause", "quorum_leader", 5, 9), fault("crash", "leader", 8, 10)),
)

QUORUM_LEADER_ISOLATED = quorum_scenario(
    name="quorum-leader-isolated",
    about="the quorum's leader is cut off from controllers and brokers: it resigns, and what it "
    "alone has is overwritten",
    faults=(fault("isolate", "quorum_leader", 5, 10), fault("crash", "leader", 8, 9)),
)

QUORUM_LEADER_FROM_VOTERS = quorum_scenario(
    name="quorum-leader-from-voters",
    about="the quorum's leader reaches all brokers and no controller: it may decide nothing",
    faults=(
        fault("partition", "quorum_leader<->quorum", 5, 10),
        fault("crash", "leader", 6, 10),
    ),
)

QUORUM_ONE_WAY = quorum_scenario(
    name="quorum-one-way",
    about="a controller cannot fetch from the leader, which reaches it: its candidacies disturb no "
    "majority",
    faults=(
        fault("partition", "quorum_follower->quorum_leader", 4, 12),
        fault("crash", "leader", 8, 9),
    ),
)

QUORUM_BRIDGE = quorum_scenario(
    name="quorum-bridge",
    about="two controllers, the leader among them, do not see each other; the third sees both",
    faults=(fault("bridge", "quorum_follower", 5, 10), fault("crash", "leader", 8, 9)),
)

QUORUM_RING = quorum_scenario(
    name="quorum-ring",
    about="each of five controllers reaches a majority, no two the same one",
    cluster=FIVE,
    faults=(fault("ring", "quorum", 5, 10), fault("crash", "leader", 8, 9)),
)

QUORUM_POWER_CUT = quorum_scenario(
    name="quorum-power-cut",
    cluster=ClusterSpec(controllers=APART.controllers, records_flushes=True),
    about="the quorum's leader loses power, then a leader of partitions with what it had not "
    "flushed",
    faults=(fault("power_cut", "quorum_leader", 5, 8), fault("power_cut", "leader", 7, 9)),
)

QUORUM_CLOCKS = quorum_scenario(
    name="quorum-clocks",
    cluster=ClusterSpec(controllers=FIVE.controllers, own_clocks=True),
    about="the clock of one of five controllers jumps 300 s back while the quorum's leader dies: "
    "the others elect; then that of the leader jumps 300 s ahead",
    faults=(
        fault("clock_shift", "quorum_follower", 4, 12, offset_s=-300),
        fault("crash", "quorum_leader", 6.5, 8),
        fault("crash", "leader", 7, 7),
        FaultSpec(
            fault="clock_shift",
            target="quorum_leader",
            at_s=18,
            duration_s=8,
            alone=True,
            options={"offset_s": 300},
        ),
    ),
    duration_s=28.0,
)
"""A controller of Apache Kafka whose clock jumped back takes no part in elections until it has
caught up or others have begun an epoch; so does one whose clock is corrected from ahead
(docs/results/finds.md). A majority must be left without them, and without the dead leader."""

QUORUM_DISKS = quorum_scenario(
    name="quorum-disks",
    about="the disk of the quorum's leader gets slow, and later that of a leader gets full: the "
    "next controller elects leaders of partitions",
    faults=(
        fault("disk_slow", "quorum_leader", 4, 10, delay_ms=200),
        fault("crash", "leader", 6, 6),
        fault("disk_full", "quorum_leader", 16, 8),
        fault("crash", "leader", 18, 6),
    ),
    duration_s=30.0,
)

QUORUM_CRASH_LOOP = quorum_scenario(
    name="quorum-crash-loop",
    about="a controller dies again and again while a leader of partitions dies",
    faults=(fault("crash_loop", "quorum_leader", 4, 12), fault("crash", "leader", 8, 9)),
)

BROKER_FENCED = quorum_scenario(
    name="broker-fenced",
    about="a leader stands still until the controller fences it, and continues to serve",
    faults=(fault("fence", "leader", 5, 9),),
)

FENCED_BY_SUCCESSOR = quorum_scenario(
    name="fenced-by-successor",
    about="the quorum's leader dies, and its successor fences a leader that stands still",
    faults=(fault("crash", "quorum_leader", 4, 14), fault("fence", "leader", 5, 11)),
)

LEADER_FROM_QUORUM = quorum_scenario(
    name="leader-from-quorum",
    about="a leader reaches all brokers and clients and no controller: it is fenced while it "
    "serves, and acknowledges nothing that could be lost",
    faults=(fault("partition", "leader->quorum", 5, 11),),
)

QUORUM_VOTERS = quorum_scenario(
    name="quorum-voters",
    about="voters leave a dynamic quorum and join it, one with a new disk and one that leads, "
    "while the quorum's leaders die",
    workload=PATIENT,
    cluster=ClusterSpec(controllers=5, quorum=DYNAMIC),
    faults=(
        fault("crash", "quorum_leader", 4, 6),
        fault("remove_voter", "quorum_follower", 4.1, 8),
        fault("crash", "quorum_leader", 12, 5),
        fault("add_voter", "quorum_follower", 17.5, 2),
        fault("crash", "leader", 19, 5),
        fault("crash", "quorum_leader", 24.5, 6),
        fault("remove_voter", "quorum_leader", 27, 5),
    ),
    at_once=3,
    besides=("undone_administration",),
    duration_s=36.0,
    recovery_deadline_s=60.0,
)

COMBINED_LEADERS = quorum_scenario(
    name="combined-leaders",
    about="three brokers are the quorum: its leader dies, then a leader of partitions stands still",
    cluster=COMBINED,
    faults=(fault("crash", "quorum_leader", 4, 8), fault("fence", "leader", 15, 7)),
    duration_s=30.0,
)


def changes_amid(fault_name: str, at_s: float) -> tuple[FaultSpec, ...]:
    """The quorum's leader dies, and topics, partitions, settings and quotas change one after
    another while the next one is elected. The healing deletes the new topics and restores settings
    and quotas, just before the next leader dies."""
    return (
        fault(fault_name, "quorum_leader", at_s, 6),
        fault("topic_churn", "topic", at_s + 0.1, 7, count=2),
        fault("add_partitions", "topic", at_s + 0.2, 7, by=1),
        fault("min_isr", "topic", at_s + 0.3, 7),
        fault("quota", "clients", at_s + 0.4, 7, producer_byte_rate=1_000_000),
    )


QUORUM_ADMINISTRATION = quorum_scenario(
    name="quorum-administration",
    about="topics, partitions, settings and quotas change while the quorum's leader dies, twice, "
    "and then a controller again and again: what was acknowledged stays",
    workload=PATIENT,
    faults=(
        *changes_amid("crash", 4),
        *changes_amid("crash", 13.5),
        *changes_amid("crash_loop", 23),
    ),
    at_once=len(changes_amid("crash", 4)),
    besides=("undone_administration",),
    duration_s=34.0,
    recovery_deadline_s=60.0,
)
"""The lab makes one change at a time. With `at_once` a leader dies when the controller that died
before it has returned, also on a slow host: its healing is the first of its round."""

QUORUM_UPGRADE = quorum_scenario(
    name="quorum-upgrade",
    about="controllers, then brokers restart in order, from 3.9.1 to the target's release; a "
    "leader of partitions dies and returns, and metadata.version is raised while the quorum's "
    "leader is dead",
    cluster=ClusterSpec(controllers=APART.controllers, older=True),
    workload=PATIENT,
    faults=(
        fault("upgrade", "all", 4, 5),
        fault("crash", "leader", 4.1, 4),
        fault("crash", "quorum_leader", 4.2, 8),
    ),
    at_once=2,
    besides=("undone_administration",),
    recovery_deadline_s=60.0,
)
"""The first crash waits for the end of the restarts, and the second for the end of the first. So
two of three voters run when the upgrade's healing raises the features, also if brokers are the
quorum."""
