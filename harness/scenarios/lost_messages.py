"""Single requests and answers that are lost, repeated or late at critical moments."""

from __future__ import annotations

from msgspec.structs import replace

from urteil.harness.scenario import ClusterSpec, FaultSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, fault
from urteil.harness.scenarios.groups import OFFSETS, POSITIONS_TOPIC
from urteil.harness.scenarios.protocol import IMPATIENT_BROKERS, protocol_scenario
from urteil.harness.scenarios.transactions import CLEANUP, ENDS, writers

BROKERS = ClusterSpec(config=IMPATIENT_BROKERS)
LOAD = WorkloadSpec(topics=(DURABLE,), rate_records_per_s=80)
MANY = replace(LOAD, topics=(replace(DURABLE, partitions=9),))
"""Each follower fetches several partitions from one leader."""
TO_CONTROLLER = "all->controller"

ISR = Scenario(
    name="protocol-isr",
    about="a replica returns to the ISRs, and no answer to its leaders' AlterPartition arrives; it "
    "falls behind again, and both leaders die: it has every acknowledged record",
    suites=("protocol",),
    cluster=BROKERS,
    workload=LOAD,
    faults=(
        fault("hold_request", "controller->all", 4, 5, api="Fetch", times=0),
        fault("lose_answer", TO_CONTROLLER, 8.6, 14, api="AlterPartition", times=0),
        FaultSpec(
            fault="hold_request",
            target="controller->all",
            at_s=8.7,
            after_event="link:AlterPartition:request:1",
            within_s=6,
            duration_s=12,
            options={"api": "Fetch", "times": 0},
        ),
        fault("crash", "bystander", 15, 8),
        fault("crash", "bystander", 15.7, 8),
    ),
    guarantees=(*REPLICATION, "unclean_leader"),
    duration_s=27.0,
)
"""The replica is on the controller: the other two brokers lead through links. Once they are dead,
it is the only member of the ISRs that the controller has written."""

ANSWERS = Scenario(
    name="protocol-answers",
    about="the answer to an AlterPartition that was applied is lost, then the answer to a "
    "follower's Fetch: every replica returns to its ISR",
    suites=("protocol",),
    cluster=BROKERS,
    workload=MANY,
    faults=(
        fault("hold_request", "controller->all", 4, 5, api="Fetch", times=0),
        fault("lose_answer", TO_CONTROLLER, 4, 5.5, api="AlterPartition"),
        fault("lose_answer", "follower->leader", 14, 4, api="Fetch"),
    ),
    guarantees=(*REPLICATION, "slow_recovery"),
    duration_s=28.0,
    recovery_deadline_s=8.0,
)

MARKERS = protocol_scenario(
    name="protocol-markers",
    about="transactions of many producers stay open for half a second, while brokers receive "
    "markers twice: each marker ends the transaction of its producer and no other",
    settings=CLEANUP,
    workload=replace(writers(6, hold_ms="500"), rate_records_per_s=120),
    faults=(
        fault("duplicate_request", "all->all", 4, 5, api="WriteTxnMarkers", occurrence=3, times=8),
    ),
    besides=ENDS,
    duration_s=13.0,
)

REGISTERS = replace(POSITIONS_TOPIC, partitions=48)
DEPOSED = protocol_scenario(
    name="protocol-deposed",
    about="followers get each answer late, for the moments in which other brokers become "
    "coordinators, there and back: a commit that waited for followers is still there if it was "
    "acknowledged",
    workload=WorkloadSpec(
        kind="commits",
        topics=(DURABLE, REGISTERS),
        consumers=10,
        rate_records_per_s=50,
        options={"commits_per_s": "0.7"},
    ),
    faults=(
        fault("delay_answer", "all->all", 4, 2, api="Fetch", times=0, delay_ms=1000),
        fault("elect_preferred", "topic", 5, 18, topic=OFFSETS),
        fault("delay_answer", "all->all", 22, 2, api="Fetch", times=0, delay_ms=1000),
    ),
    besides=("commit_register", "commit_went_back"),
    duration_s=42.0,
)
"""Reads are judged ten seconds after a move, when every broker knows its successor. Commits are so
rare that a lost one is still the last of its partition then."""

LATE_END = Scenario(
    name="protocol-late-end",
    about="an EndTxn of an ordinary producer is held until its next transaction is open "
    "(KAFKA-17754): the protocol of 3.9 cannot distinguish them, and the next transaction may "
    "end early",
    suites=("protocol",),
    cluster=ClusterSpec(config=IMPATIENT_BROKERS | CLEANUP),
    workload=replace(
        writers(4, hold_ms="900", aborts="0.5", txn_records="20"), request_timeout_ms=1_500
    ),
    faults=tuple(
        fault("hold_request", "client->all", 4 + 4.2 * number, 3.1, api="EndTxn", times=4)
        for number in range(6)
    ),
    guarantees=("precommitted_read",),
    must_find=("precommitted_read",),
    duration_s=31.0,
)
"""The producers resend it on another connection after two seconds, and continue. Their next
transaction is open for 0.9 s, so the healing falls into it if the EndTxn came in the first
second."""
"""Single requests and answers at critical moments."""
