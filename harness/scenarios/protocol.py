"""Single requests and answers that are lost, late, repeated or changed, by API."""

from __future__ import annotations

from collections.abc import Mapping

from urteil.harness.scenario import ClusterSpec, FaultSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, fault
from urteil.harness.scenarios.transactions import CLEANUP, ENDS, SOURCE

EACH_S, PAUSE_S = 2.5, 1.0
LATE_MS = 4_000
ACTS = ("lose_request", "lose_answer", "duplicate_request", "delay_answer")
REQUEST_TIMEOUT_MS = 1_500
IMPATIENT_BROKERS = {
    "request.timeout.ms": "2000",
    "replica.socket.timeout.ms": "2000",
    "controller.socket.timeout.ms": "2000",
}
"""Timeout of requests between brokers; the default is half a minute."""


def disturb(api: str, target: str, at_s: float, **options: str | float | bool) -> list[FaultSpec]:
    """One request of the API lost, one answer lost, one request repeated and one answer late, in
    sequence from `at_s` on."""
    return [
        fault(
            name,
            target,
            at_s + number * (EACH_S + PAUSE_S),
            EACH_S,
            api=api,
            **(options | ({"delay_ms": LATE_MS} if name == "delay_answer" else {})),
        )
        for number, name in enumerate(ACTS)
    ]


def length_s(apis: int) -> float:
    """The duration of the load of a scenario that disturbs `count` APIs in sequence."""
    return 4 + apis * len(ACTS) * (EACH_S + PAUSE_S) + 4


def begin_s(count: int) -> float:
    """The time at which the API after `count` others is disturbed."""
    return 4 + count * len(ACTS) * (EACH_S + PAUSE_S)


STEADY = WorkloadSpec(topics=(DURABLE,), rate_records_per_s=150)


def protocol_scenario(
    *,
    name: str,
    about: str,
    faults: tuple[FaultSpec, ...],
    besides: tuple[str, ...],
    duration_s: float,
    workload: WorkloadSpec = STEADY,
    settings: Mapping[str, str] | None = None,
) -> Scenario:
    """A scenario of the suite: brokers with short timeouts, which keep the guarantees of
    replication and those of `besides`."""
    return Scenario(
        name=name,
        about=about,
        suites=("protocol",),
        cluster=ClusterSpec(config=IMPATIENT_BROKERS | dict(settings or {})),
        workload=workload,
        faults=faults,
        guarantees=(*REPLICATION, *besides),
        duration_s=duration_s,
    )


PRODUCE = protocol_scenario(
    name="protocol-produce",
    about="single Produce requests of idempotent producers are lost, repeated, or answered late or "
    "never: each record is stored once, in order",
    workload=WorkloadSpec(
        topics=(DURABLE,), rate_records_per_s=150, request_timeout_ms=REQUEST_TIMEOUT_MS
    ),
    faults=(
        *disturb("Produce", "client->leader", begin_s(0)),
        fault("answer_error", "client->leader", begin_s(1), EACH_S, api="Produce"),
        fault(
            "close_at", "client->leader", begin_s(1) + EACH_S + PAUSE_S, EACH_S,
            api="Produce", moment="after request",
        ),
    ),
    besides=("duplicate", "reordered_send", "sequence_gap", "stalled_producer"),
    duration_s=length_s(1) + 2 * (EACH_S + PAUSE_S) + 8,
)  # fmt: skip

REPLICATE = protocol_scenario(
    name="protocol-replication",
    about="single Fetch requests of followers are lost, repeated, or answered late or never, and "
    "the first AlterPartition after a follower's crash has no answer",
    faults=(
        *disturb("Fetch", "follower->leader", begin_s(0)),
        fault("lose_answer", "all", begin_s(1), 16, api="AlterPartition"),
        fault("crash", "follower", begin_s(1) + 1, 5),
    ),
    besides=("epoch_lineage", "two_leaders"),
    duration_s=length_s(1) + 18,
)
"""A broker of Apache Kafka needs up to ten seconds more until its replicas are in sync again."""

TRANSACTIONS = protocol_scenario(
    name="protocol-transactions",
    about="single requests that add partitions to transactions, end them and write their markers "
    "are lost, repeated, or answered late or never: each transaction ends once",
    settings=CLEANUP,
    workload=WorkloadSpec(
        kind="transactions",
        topics=(SOURCE,),
        rate_records_per_s=150,
        isolation="read_committed",
        request_timeout_ms=REQUEST_TIMEOUT_MS,
    ),
    faults=(
        *disturb("AddPartitionsToTxn", "client->all", begin_s(0)),
        *disturb("EndTxn", "client->all", begin_s(1)),
        *disturb("WriteTxnMarkers", "all", begin_s(2)),
    ),
    besides=ENDS,
    duration_s=length_s(3),
)

GROUPS = protocol_scenario(
    name="protocol-groups",
    about="single commits, heartbeats and joins of a group's members are lost, repeated, or "
    "answered late or never: one owner a partition, nothing skipped",
    workload=WorkloadSpec(kind="group", topics=(DURABLE,), consumers=3, rate_records_per_s=150),
    faults=(
        *disturb("OffsetCommit", "client->all", begin_s(0)),
        *disturb("Heartbeat", "client->all", begin_s(1)),
        fault("lose_answer", "client->all", begin_s(2), 8, api="JoinGroup"),
        fault("kill_client", "member", begin_s(2) + 1, 3),
        fault("lose_answer", "client->all", begin_s(2) + 14, 8, api="SyncGroup"),
        fault("kill_client", "member", begin_s(2) + 15, 3),
    ),
    besides=("two_owners", "commit_went_back", "poll_skip"),
    duration_s=length_s(2) + 28,
)

CONTROLLER = protocol_scenario(
    name="protocol-controller",
    about="the controller's first LeaderAndIsr and UpdateMetadata after another broker's crash are "
    "lost, and after the next crash they are repeated",
    faults=(
        fault("lose_answer", "controller->all", 4, 9, api="LeaderAndIsr"),
        fault("lose_request", "controller->all", 4, 9, api="UpdateMetadata"),
        fault("crash", "bystander", 5, 6),
        fault("duplicate_request", "controller->all", 20, 9, api="LeaderAndIsr", times=0),
        fault("duplicate_request", "controller->all", 20, 9, api="UpdateMetadata", times=0),
        fault("crash", "bystander", 21, 6),
    ),
    besides=("two_leaders", "epoch_went_back"),
    duration_s=36.0,
)

MOMENTS = protocol_scenario(
    name="protocol-moments",
    about="the leader dies when it has served a Produce and before its answer arrives, and the "
    "controller before a broker receives its UpdateMetadata",
    faults=(
        FaultSpec(
            fault="crash",
            target="receiver",
            at_s=5,
            after_event="link:Produce:answer:20",
            duration_s=5,
        ),
        FaultSpec(
            fault="crash",
            target="sender",
            at_s=18,
            after_event="link:UpdateMetadata:request:1",
            within_s=6,
            duration_s=5,
        ),
        fault("crash", "follower", 19, 8),
    ),
    besides=("duplicate", "reordered_send", "two_leaders", "epoch_went_back"),
    duration_s=34.0,
)
"""The follower's crash makes the controller send UpdateMetadata."""
