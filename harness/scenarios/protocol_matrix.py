"""Every API that changes state, with each act on its requests and answers.

A row is an API on its links. Its requests and answers are acted on one after another: a request
lost, an answer lost, a request delivered twice, an answer that is later than its sender waits, and
a node killed while one is under way. APIs that clients send all the time are disturbed by time,
rare ones by number: the rules of all rows wait side by side for the first matching frames.
docs/results/protocol.md has the table.
"""

from __future__ import annotations

from msgspec.structs import replace

from urteil.harness.conformance.required_settings import LIMITS
from urteil.harness.scenario import ClusterSpec, FaultSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, fault
from urteil.harness.scenarios.groups import POSITIONS_TOPIC
from urteil.harness.scenarios.protocol import IMPATIENT_BROKERS, LATE_MS, REQUEST_TIMEOUT_MS
from urteil.harness.scenarios.protocol_apis import FROM_CONTROLLER, STATE_CHANGES
from urteil.harness.scenarios.transactions import (
    CLEANUP,
    ENDS,
    STEPS,
    copiers,
    writers,
)

BROKERS = ClusterSpec(config=IMPATIENT_BROKERS)
LOAD = WorkloadSpec(topics=(DURABLE,), rate_records_per_s=80)
IMPATIENT_MEMBERS = WorkloadSpec(
    kind="group",
    topics=(DURABLE,),
    consumers=3,
    rate_records_per_s=80,
    request_timeout_ms=REQUEST_TIMEOUT_MS,
    options={"session_timeout_ms": "3000", "max_poll_interval_ms": "3000"},
)
"""A member waits five seconds longer than `max.poll.interval.ms` for the answer to a JoinGroup."""
FIRST = {"lose_request": 1, "lose_answer": 1, "duplicate_request": 3, "delay_answer": 2}
"""By act, the number of the first frame of a rare API that it hits. The first request is lost, the
second has no answer, and the third arrives twice and has a late answer, which is the second one. A
client that repeats its request until it is answered meets all four with one change."""
KILL_S, KILL_EVERY_S = 3.5, 8.0
UNPLAYED: tuple[str, ...] = ()
"""The suites of scenarios that have not been PASS yet on both targets."""


def by_number(
    apis: tuple[str, ...], until_s: float, **options: str | float | bool
) -> tuple[FaultSpec, ...]:
    """All acts on the first requests and answers of each API."""
    return tuple(
        fault(
            act,
            STATE_CHANGES[api].target,
            3,
            until_s - 3,
            api=api,
            occurrence=first,
            **(options | ({"delay_ms": LATE_MS} if act == "delay_answer" else {})),
        )
        for api in apis
        for act, first in FIRST.items()
    )


def broker_kill(number: int, moment: str, target: str) -> FaultSpec:
    """A broker dies while a frame waits in the proxy: `moment` is API:request or API:answer.

    A broker of Apache Kafka needs up to five seconds to return. `at_once` of the scenarios lets the
    next kill await its frame from then on."""
    return FaultSpec(
        fault="crash",
        target=target,
        at_s=4 + number * KILL_EVERY_S,
        after_event=f"link:{moment}:1",
        within_s=10,
        duration_s=KILL_S,
    )


def kills_s(count: int) -> float:
    """The load of a scenario with so many kills."""
    return 4 + count * KILL_EVERY_S + 2


def kills(*moments: tuple[str, str]) -> tuple[FaultSpec, ...]:
    """One kill after another: moment and target."""
    return tuple(broker_kill(number, *moment) for number, moment in enumerate(moments))


OF_EXAMINER = (
    "CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs",
    "DeleteRecords", "ElectLeaders", "AlterPartitionReassignments", "AlterClientQuotas",
    "DeleteGroups", "OffsetDelete",
)  # fmt: skip
ADMINISTRATION = Scenario(
    name="protocol-administration",
    about="the first administrative requests of each API are lost, repeated, or answered late or "
    "never, while an examiner repeats its questions: afterwards every answer is right",
    suites=UNPLAYED,
    cluster=ClusterSpec(config=LIMITS | IMPATIENT_BROKERS, racks=True),
    workload=WorkloadSpec(
        topics=(DURABLE,),
        rate_records_per_s=50,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        options={"questions": "2"},
    ),
    faults=by_number(OF_EXAMINER, 100, client_id="examiner"),
    guarantees=(*REPLICATION, "wrong_answer"),
    duration_s=125.0,
)
"""A round of questions takes a minute without faults, and the requests of some come late in it."""

RIGHTS = Scenario(
    name="protocol-rights",
    about="the first requests that change ACLs and passwords are lost, repeated, or answered late "
    "or never: each broker knows the present rights",
    suites=("protocol",),
    cluster=ClusterSpec(users=True, config=IMPATIENT_BROKERS),
    workload=replace(LOAD, request_timeout_ms=REQUEST_TIMEOUT_MS),
    faults=by_number(("CreateAcls", "DeleteAcls", "AlterUserScramCredentials"), 43),
    guarantees=(*REPLICATION, "unauthorised"),
    duration_s=45.0,
)
"""The administrator makes one change at a time: it waits out nine timeouts."""

COPIES = Scenario(
    name="protocol-copies",
    about="single requests by which transactions begin and take offsets with them are lost, "
    "repeated, or answered late or never: each input has one output",
    suites=UNPLAYED,
    cluster=ClusterSpec(config=IMPATIENT_BROKERS | CLEANUP),
    workload=replace(copiers(), request_timeout_ms=REQUEST_TIMEOUT_MS),
    faults=(
        *by_number(("AddOffsetsToTxn", "TxnOffsetCommit"), 30),
        *by_number(("InitProducerId",), 34),
        *(fault("kill_client", "transactional", at_s, 1) for at_s in (5, 10, 15, 20, 25)),
    ),
    guarantees=(*REPLICATION, *ENDS, *STEPS),
    duration_s=36.0,
)

MEMBERS = Scenario(
    name="protocol-members",
    about="single requests by which members join and leave a group that rebalances all the time "
    "are lost, repeated, or answered late or never: one owner a partition, nothing skipped",
    suites=UNPLAYED,
    cluster=BROKERS,
    workload=IMPATIENT_MEMBERS,
    faults=(
        fault("rebalance_storm", "group", 4, 58),
        *by_number(("JoinGroup", "SyncGroup", "LeaveGroup"), 62),
    ),
    guarantees=(*REPLICATION, "two_owners", "commit_went_back", "poll_skip"),
    duration_s=65.0,
)

COMMANDS = Scenario(
    name="protocol-commands",
    about="the controller's first LeaderAndIsr, UpdateMetadata and StopReplica are lost, repeated, "
    "or answered late or never, while topics come and go",
    suites=UNPLAYED,
    cluster=BROKERS,
    workload=LOAD,
    faults=(
        *by_number(("LeaderAndIsr", "UpdateMetadata", "StopReplica"), 42),
        *(fault("topic_churn", "topic", 4 + 6 * number, 2, count=2) for number in range(6)),
    ),
    guarantees=(*REPLICATION, "two_leaders", "leftover_log"),
    duration_s=46.0,
)

ISR_CHANGES = Scenario(
    name="protocol-isr-changes",
    about="the first AlterPartition requests are lost, repeated, or answered late or never, while "
    "a replica leaves the ISRs and returns",
    suites=UNPLAYED,
    cluster=BROKERS,
    workload=LOAD,
    faults=(
        *by_number(("AlterPartition",), 44),
        *(
            fault("hold_request", FROM_CONTROLLER, 4 + 10 * number, 4.5, api="Fetch", times=0)
            for number in range(4)
        ),
    ),
    guarantees=(*REPLICATION, "two_leaders", "slow_recovery"),
    duration_s=54.0,
    recovery_deadline_s=8.0,
)

DEPARTURES = Scenario(
    name="protocol-departures",
    about="the ControlledShutdown of a leader is lost, answered late or never, or delivered twice: "
    "it leaves in the end, and leaders move",
    suites=UNPLAYED,
    cluster=ClusterSpec(config=IMPATIENT_BROKERS | {"controlled.shutdown.retry.backoff.ms": "500"}),
    workload=LOAD,
    faults=(
        *by_number(("ControlledShutdown",), 48),
        *(fault("shutdown", "bystander", 4 + 11 * number, 3) for number in range(4)),
    ),
    guarantees=(*REPLICATION, "two_leaders", "unclean_leader"),
    duration_s=52.0,
)

KILLED_PRODUCING = Scenario(
    name="protocol-killed-producing",
    about="a broker dies when a Produce or a Fetch reaches it, and before its answer arrives",
    suites=UNPLAYED,
    cluster=BROKERS,
    workload=LOAD,
    faults=kills(
        ("Produce:request", "receiver"),
        ("Produce:answer", "receiver"),
        ("Fetch:request", "receiver"),
        ("Fetch:answer", "receiver"),
    ),
    at_once=1,
    guarantees=(*REPLICATION, "duplicate", "reordered_send"),
    duration_s=kills_s(4),
)

KILLED_IN_TRANSACTIONS = Scenario(
    name="protocol-killed-in-transactions",
    about="the coordinator of a transaction dies when one of its requests reaches it, and "
    "before its answer arrives",
    suites=UNPLAYED,
    cluster=ClusterSpec(config=IMPATIENT_BROKERS | CLEANUP),
    workload=writers(),
    faults=kills(
        ("AddPartitionsToTxn:request", "receiver"),
        ("AddPartitionsToTxn:answer", "receiver"),
        ("EndTxn:request", "receiver"),
        ("EndTxn:answer", "receiver"),
        ("WriteTxnMarkers:request", "sender"),
        ("WriteTxnMarkers:answer", "receiver"),
    ),
    at_once=1,
    guarantees=(*REPLICATION, *ENDS),
    duration_s=kills_s(6),
)

KILLED_COPYING = Scenario(
    name="protocol-killed-copying",
    about="a coordinator dies when a request that moves offsets or begins a producer reaches it, "
    "and before its answer arrives",
    suites=UNPLAYED,
    cluster=ClusterSpec(config=IMPATIENT_BROKERS | CLEANUP),
    workload=copiers(),
    faults=(
        *kills(
            ("AddOffsetsToTxn:request", "receiver"),
            ("AddOffsetsToTxn:answer", "receiver"),
        ),
        broker_kill(2, "TxnOffsetCommit:request", "receiver"),
        broker_kill(3, "TxnOffsetCommit:answer", "receiver"),
        broker_kill(4, "InitProducerId:answer", "receiver"),
        fault("kill_client", "transactional", 4.5 + 4 * KILL_EVERY_S, 1),
    ),
    at_once=1,
    guarantees=(*REPLICATION, *ENDS, *STEPS),
    duration_s=kills_s(5) + 4,
)

KILLED_IN_GROUP = Scenario(
    name="protocol-killed-in-group",
    about="a group's coordinator dies when a request of a member reaches it, and before its "
    "answer arrives",
    suites=UNPLAYED,
    cluster=BROKERS,
    workload=WorkloadSpec(kind="group", topics=(DURABLE,), consumers=3, rate_records_per_s=80),
    faults=(
        fault("rebalance_storm", "group", 3, 60),
        *kills(
            ("JoinGroup:request", "receiver"),
            ("SyncGroup:answer", "receiver"),
            ("OffsetCommit:answer", "receiver"),
            ("OffsetCommit:request", "receiver"),
            ("Heartbeat:request", "receiver"),
            ("LeaveGroup:answer", "receiver"),
        ),
    ),
    at_once=2,
    guarantees=(*REPLICATION, "two_owners", "commit_went_back", "poll_skip"),
    duration_s=kills_s(6) + 12,
)

KILLED_ADMINISTRATING = Scenario(
    name="protocol-killed-administrating",
    about="a broker dies when an administrative request reaches it, or before its answer arrives, "
    "and the controller before its own requests do",
    suites=UNPLAYED,
    cluster=ClusterSpec(config=LIMITS | IMPATIENT_BROKERS, racks=True),
    workload=WorkloadSpec(topics=(DURABLE,), rate_records_per_s=50, options={"questions": "2"}),
    faults=kills(
        ("CreateTopics:answer", "receiver"),
        ("CreateTopics:request", "receiver"),
        ("DeleteTopics:answer", "receiver"),
        ("DeleteTopics:request", "receiver"),
        ("LeaderAndIsr:request", "sender"),
        ("LeaderAndIsr:answer", "receiver"),
        ("UpdateMetadata:answer", "receiver"),
        ("StopReplica:request", "sender"),
        ("AlterPartition:request", "sender"),
        ("AlterPartition:answer", "receiver"),
    ),
    at_once=1,
    guarantees=(*REPLICATION, "two_leaders", "epoch_went_back"),
    duration_s=kills_s(10),
    recovery_deadline_s=60.0,
)

OFFSETS_DELETED = Scenario(
    name="protocol-offsets",
    about="single requests that commit and delete offsets and groups are lost, repeated, or "
    "answered late or never: offsets are registers",
    suites=UNPLAYED,
    cluster=BROKERS,
    workload=WorkloadSpec(
        kind="commits",
        topics=(DURABLE, POSITIONS_TOPIC),
        consumers=4,
        rate_records_per_s=50,
        options={"deletions": "1"},
    ),
    faults=by_number(("OffsetCommit", "OffsetDelete", "DeleteGroups"), 30),
    guarantees=("commit_register", "commit_went_back"),
    duration_s=34.0,
)
"""All acts on the requests and answers of all APIs that change state."""
