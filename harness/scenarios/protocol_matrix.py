"""Every API that changes state, with each act on its requests and answers.

A row is an API on its links. Its requests and answers are acted on in sequence: a request lost, an
answer lost, a request delivered twice, an answer that exceeds its sender's timeout. APIs that
clients use all the time are disturbed by time, rare ones by number: the rules of all rows wait in
parallel for the first matching frames. `protocol_kills` kills a node while one is under way.
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
"""Act to the number of the first frame of a rare API that it hits. The first request is lost, the
second has no answer, and the third arrives twice and has a late answer, which is the second one. A
client that repeats its request until it is answered meets all four with one change."""


def by_number(
    apis: tuple[str, ...], until_s: float, from_s: float = 3, **options: str | float | bool
) -> tuple[FaultSpec, ...]:
    """All acts on the first requests and answers of each API from then on."""
    return tuple(
        fault(
            act,
            STATE_CHANGES[api].target,
            from_s,
            until_s - from_s,
            api=api,
            occurrence=first,
            **(options | ({"delay_ms": LATE_MS} if act == "delay_answer" else {})),
        )
        for api in apis
        for act, first in FIRST.items()
    )


OF_EXAMINER = (
    "CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs",
    "DeleteRecords", "ElectLeaders", "AlterPartitionReassignments", "AlterClientQuotas",
)  # fmt: skip
ADMINISTRATION = Scenario(
    name="protocol-administration",
    about="the first administrative requests of each API are lost, repeated, or answered late or "
    "never, while an examiner repeats its questions: afterwards every answer is right",
    suites=("protocol",),
    cluster=ClusterSpec(config=LIMITS | IMPATIENT_BROKERS, racks=True),
    workload=WorkloadSpec(
        topics=(DURABLE,),
        rate_records_per_s=50,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        options={"questions": "2", "question_subject": "administration"},
    ),
    faults=by_number(OF_EXAMINER, 56, client_id="examiner"),
    guarantees=(*REPLICATION, "wrong_answer"),
    duration_s=60.0,
)

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
    suites=("protocol",),
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
    suites=("protocol",),
    cluster=BROKERS,
    workload=IMPATIENT_MEMBERS,
    faults=(
        fault("rebalance_storm", "group", 3, 61),
        *by_number(("JoinGroup", "SyncGroup", "LeaveGroup"), 65, from_s=9),
    ),
    guarantees=(*REPLICATION, "two_owners", "commit_went_back", "poll_skip"),
    duration_s=68.0,
)
"""The storm's first member has partitions before the first request is lost."""

COMMANDS = Scenario(
    name="protocol-commands",
    about="the controller's first LeaderAndIsr, UpdateMetadata and StopReplica are lost, repeated, "
    "or answered late or never, while topics come and go",
    suites=("protocol",),
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
    suites=("protocol",),
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
    suites=("protocol",),
    cluster=ClusterSpec(config=IMPATIENT_BROKERS | {"controlled.shutdown.retry.backoff.ms": "500"}),
    workload=LOAD,
    faults=(
        *by_number(("ControlledShutdown",), 48),
        *(fault("shutdown", "bystander", 4 + 11 * number, 3) for number in range(4)),
    ),
    guarantees=(*REPLICATION, "two_leaders", "unclean_leader"),
    duration_s=52.0,
)

OFFSETS_DELETED = Scenario(
    name="protocol-offsets",
    about="single requests that commit and delete offsets and groups are lost, repeated, or "
    "answered late or never: offsets are registers",
    suites=("protocol",),
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
