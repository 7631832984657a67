"""A node dies while a request or an answer is under way, for every API that changes state.

The frame waits in its proxy until the broker that sent or receives it is dead. A kill waits for its
frame to the end of the load, and the next kill waits from the healing before it on. So every kill
has its frame, however long a broker needs to return: Apache Kafka waits for the end of its own
session.
"""

from __future__ import annotations

from urteil.harness.conformance.required_settings import LIMITS
from urteil.harness.scenario import ClusterSpec, FaultSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, fault
from urteil.harness.scenarios.groups import POSITIONS_TOPIC
from urteil.harness.scenarios.protocol import IMPATIENT_BROKERS
from urteil.harness.scenarios.protocol_apis import FROM_CONTROLLER
from urteil.harness.scenarios.protocol_matrix import BROKERS, LOAD
from urteil.harness.scenarios.transactions import CLEANUP, ENDS, STEPS, copiers, writers

KILL_S, KILL_EVERY_S = 3.5, 4.5
"""A kill outlasts a session, so there are elections. The second is the time from one kill's begin
to the next where brokers return at once."""
FIRST_S, LAST_S = 4.0, 4.0


def kills(*moments: str) -> tuple[FaultSpec, ...]:
    """One kill after another. A moment is `API:request` or `API:answer`, with the node that dies:
    `EndTxn:answer receiver`."""
    return tuple(
        FaultSpec(
            fault="crash",
            target=target,
            at_s=FIRST_S + number * KILL_EVERY_S,
            after_event=f"link:{frame}:1",
            duration_s=KILL_S,
        )
        for number, (frame, target) in enumerate(moment.split() for moment in moments)
    )


def receiver_kills(*apis: str) -> tuple[FaultSpec, ...]:
    """The receiver of each API dies at a request and before an answer."""
    return kills(*(f"{api}:{frame} receiver" for api in apis for frame in ("answer", "request")))


def kill_scenario(
    name: str,
    about: str,
    faults: tuple[FaultSpec, ...],
    *,
    cluster: ClusterSpec = BROKERS,
    workload: WorkloadSpec = LOAD,
    guarantees: tuple[str, ...] = (),
    others_at_once: int = 0,
) -> Scenario:
    """Kills in sequence, with other faults at the same time."""
    count = sum(spec.after_event is not None for spec in faults)
    others_end_s = max(spec.at_s + spec.duration_s for spec in faults if spec.at_s is not None)
    return Scenario(
        name=name,
        about=about,
        suites=("protocol",),
        cluster=cluster,
        workload=workload,
        faults=faults,
        at_once=1 + others_at_once,
        guarantees=(*REPLICATION, *guarantees),
        duration_s=max(FIRST_S + count * KILL_EVERY_S, others_end_s) + LAST_S,
        recovery_deadline_s=60.0,
    )


IN_TRANSACTIONS = ClusterSpec(config=IMPATIENT_BROKERS | CLEANUP)
EXAMINED = ClusterSpec(config=LIMITS | IMPATIENT_BROKERS, racks=True)
ROUNDS = "100"
"""More requests than a run has time for."""


def examiner(subject: str) -> WorkloadSpec:
    """Requests about one subject, without end."""
    options = {"questions": ROUNDS, "question_subject": subject}
    return WorkloadSpec(topics=(DURABLE,), rate_records_per_s=50, options=options)


KILLED_PRODUCING = kill_scenario(
    "protocol-killed-producing",
    "a broker dies when a Produce or a Fetch reaches it, and before its answer arrives",
    receiver_kills("Produce", "Fetch"),
    guarantees=("duplicate", "reordered_send"),
)

KILLED_IN_TRANSACTIONS = kill_scenario(
    "protocol-killed-in-transactions",
    "the coordinator of a transaction dies when one of its requests reaches it, and before its "
    "answer arrives; so does the sender or the receiver of a transaction's markers",
    kills(
        "WriteTxnMarkers:request sender",
        "WriteTxnMarkers:answer receiver",
        "AddPartitionsToTxn:request receiver",
        "AddPartitionsToTxn:answer receiver",
        "EndTxn:request receiver",
        "EndTxn:answer receiver",
    ),
    cluster=IN_TRANSACTIONS,
    workload=writers(),
    guarantees=ENDS,
)
"""Markers first: after two kills the surviving broker leads and coordinates everything, and sends
no markers to others."""

KILLED_COPYING = kill_scenario(
    "protocol-killed-copying",
    "a coordinator dies when a request that moves offsets or begins a producer reaches it, and "
    "before its answer arrives",
    (
        *(fault("kill_client", "transactional", at_s, 1) for at_s in (5, 12, 18)),
        *receiver_kills("InitProducerId", "AddOffsetsToTxn", "TxnOffsetCommit"),
    ),
    cluster=IN_TRANSACTIONS,
    workload=copiers(),
    guarantees=(*ENDS, *STEPS),
)
"""A killed client's next session sends InitProducerId. The third is for a slow second kill."""

MEMBERS = WorkloadSpec(kind="group", topics=(DURABLE,), consumers=3, rate_records_per_s=80)
OWNERSHIP = ("two_owners", "commit_went_back", "poll_skip")
KILLED_IN_GROUP = kill_scenario(
    "protocol-killed-in-group",
    "a group's coordinator dies when a request reaches it by which a member stays or leaves, and "
    "before its answer arrives",
    (fault("rebalance_storm", "group", 3, 50), *receiver_kills("Heartbeat", "LeaveGroup")),
    workload=MEMBERS,
    guarantees=OWNERSHIP,
    others_at_once=1,
)

KILLED_REBALANCING = kill_scenario(
    "protocol-killed-rebalancing",
    "a group's coordinator dies when a request reaches it by which a member joins or gets its "
    "partitions, and before its answer arrives",
    (fault("rebalance_storm", "group", 3, 50), *receiver_kills("SyncGroup", "JoinGroup")),
    workload=MEMBERS,
    guarantees=OWNERSHIP,
    others_at_once=1,
)

KILLED_COMMITTING = kill_scenario(
    "protocol-killed-committing",
    "a group's coordinator dies when a request reaches it that commits or deletes offsets, and "
    "before its answer arrives: offsets are registers",
    receiver_kills("OffsetCommit", "OffsetDelete", "DeleteGroups"),
    workload=WorkloadSpec(
        kind="commits",
        topics=(DURABLE, POSITIONS_TOPIC),
        consumers=4,
        rate_records_per_s=50,
        options={"deletions": "1"},
    ),
    guarantees=("commit_register", "commit_went_back"),
)

KILLED_CHANGING_TOPICS = kill_scenario(
    "protocol-killed-changing-topics",
    "a broker dies when a request reaches it that creates, extends or deletes a topic, and before "
    "its answer arrives",
    receiver_kills("CreateTopics", "CreatePartitions", "DeleteTopics"),
    cluster=EXAMINED,
    workload=examiner("topics"),
    guarantees=("two_leaders", "epoch_went_back"),
)

KILLED_CHANGING_SETTINGS = kill_scenario(
    "protocol-killed-changing-settings",
    "a broker dies when a request reaches it that changes settings or quotas, and before its "
    "answer arrives",
    receiver_kills("AlterConfigs", "IncrementalAlterConfigs", "AlterClientQuotas"),
    cluster=EXAMINED,
    workload=examiner("settings"),
    guarantees=("two_leaders", "epoch_went_back"),
)

KILLED_REASSIGNING = kill_scenario(
    "protocol-killed-reassigning",
    "a broker dies when a request reaches it that moves replicas, elects a leader or deletes "
    "records, and before its answer arrives",
    receiver_kills("AlterPartitionReassignments", "ElectLeaders", "DeleteRecords"),
    cluster=EXAMINED,
    workload=examiner("replicas"),
    guarantees=("two_leaders", "epoch_went_back"),
)

KILLED_CHANGING_RIGHTS = kill_scenario(
    "protocol-killed-changing-rights",
    "a broker dies when a request reaches it that changes ACLs or passwords, and before its answer "
    "arrives: each broker knows the present rights",
    receiver_kills("AlterUserScramCredentials", "CreateAcls", "DeleteAcls"),
    cluster=ClusterSpec(users=True, config=IMPATIENT_BROKERS),
    guarantees=("unauthorised",),
)

KILLED_COMMANDING = kill_scenario(
    "protocol-killed-commanding",
    "the controller dies when one of its requests is under way, and a broker before its answer "
    "arrives, while an examiner creates and deletes topics",
    kills(
        "LeaderAndIsr:request sender",
        "LeaderAndIsr:answer receiver",
        "UpdateMetadata:request sender",
        "UpdateMetadata:answer receiver",
        "StopReplica:request sender",
        "StopReplica:answer receiver",
    ),
    cluster=EXAMINED,
    workload=examiner("topics"),
    guarantees=("two_leaders", "epoch_went_back"),
)

KILLED_CHANGING_ISRS = kill_scenario(
    "protocol-killed-changing-isrs",
    "a leader dies when its request to change an ISR is under way, and the controller before its "
    "answer arrives",
    (
        *(
            fault("hold_request", FROM_CONTROLLER, 3 + 9 * number, 4.5, api="Fetch", times=0)
            for number in range(3)
        ),
        *kills("AlterPartition:request sender", "AlterPartition:answer receiver"),
    ),
    guarantees=("two_leaders", "epoch_went_back"),
    others_at_once=1,
)
