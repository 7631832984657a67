"""Transactions: clients that die, sleep or share an id; coordinators that fail in the middle."""

from __future__ import annotations

from urteil.harness.scenario import ClusterSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import REPLICATION, fault

CLEANUP = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
SAFE = {"min.insync.replicas": "2"}
SOURCE, SINK = TopicSpec(config=SAFE), TopicSpec(name="urteil-out", config=SAFE)
DECISIONS = "__transaction_state"
ID = "urteil-group-t1"
"""The transactional id of the first writer."""


def cluster(**config: str) -> ClusterSpec:
    """Three brokers that look for transactions past their timeout every second."""
    return ClusterSpec(config=CLEANUP | {k.replace("_", "."): v for k, v in config.items()})


def load(*, copies: bool = False, **options: str) -> WorkloadSpec:
    """Writers of transactions, and with `copies` a group that copies in transactions."""
    return WorkloadSpec(
        kind="transactions",
        topics=(SOURCE, SINK) if copies else (SOURCE,),
        producers=3,
        rate_records_per_s=150,
        isolation="read_committed",
        options=options,
    )


WHOLE = (*REPLICATION, "torn_txn", "aborted_read", "precommitted_read", "hanging_txn")
STEPS = ("offsets_not_atomic", "processed_twice", "unprocessed")

TRANSACTIONS = Scenario(
    name="transactions",
    about="transactions over several partitions, committed and aborted, while a broker dies",
    cluster=cluster(),
    workload=load(),
    faults=(fault("crash", "leader", 6, 5),),
    guarantees=WHOLE,
    duration_s=16.0,
)

RESTART = Scenario(
    name="transactions-restart",
    about="leaders with aborted transactions in their logs shut down and come back",
    cluster=cluster(),
    workload=load(aborts="0.5"),
    faults=(fault("shutdown", "leader", 5, 3), fault("shutdown", "leader", 12, 3)),
    guarantees=WHOLE,
    duration_s=18.0,
)

SHARED_ID = Scenario(
    name="shared-transactional-id",
    about="two producers with one transactional id shut each other out, again and again",
    cluster=cluster(),
    workload=load(),
    faults=(fault("second_session", "transactionals", 4, 10),),
    guarantees=(*WHOLE, "zombie_write"),
    duration_s=18.0,
)

UNSENT_MARKERS = Scenario(
    name="unsent-markers",
    about="a coordinator that cannot send its markers dies between its decisions and them",
    cluster=cluster(transaction_state_log_num_partitions="1"),
    workload=load(),
    faults=(
        fault("partition", "coordinator->all", 5, 7, transactional_id=ID),
        fault("crash", "coordinator", 6.5, 6, transactional_id=ID),
    ),
    guarantees=WHOLE,
    duration_s=20.0,
)

EXACTLY_ONCE = Scenario(
    name="exactly-once",
    about="read, process, write in transactions, while a copier, a broker and a coordinator die",
    cluster=cluster(),
    workload=load(copies=True, copiers="2"),
    faults=(
        fault("kill_client", "copier", 6, 3),
        fault("crash", "leader", 11, 5),
        fault("crash", "coordinator", 19, 5, transactional_id="urteil-group-x1"),
    ),
    guarantees=(*WHOLE, *STEPS),
    duration_s=28.0,
)

PAUSED_COPIER = Scenario(
    name="paused-copier",
    about="a copier sleeps past its session and its transaction: others copy what it had begun",
    cluster=cluster(),
    workload=load(
        copies=True, copiers="2", transaction_timeout_ms="4000", session_timeout_ms="4000"
    ),
    faults=(
        fault("pause_client", "copier", 4, 8),
        fault("crash", "coordinator", 15, 5),
        fault("second_session", "copier", 21, 4),
    ),
    guarantees=(*WHOLE, *STEPS),
    duration_s=29.0,
)

DELAYED_END = Scenario(
    name="delayed-end-txn",
    about="an EndTxn that was delayed arrives in the next transaction and ends it (KAFKA-17754)",
    cluster=cluster(),
    workload=load(delayed_ends="12"),
    guarantees=WHOLE,
    must_find=("torn_txn",),
    duration_s=14.0,
)

FAMILY = (
    TRANSACTIONS,
    RESTART,
    SHARED_ID,
    UNSENT_MARKERS,
    EXACTLY_ONCE,
    PAUSED_COPIER,
    DELAYED_END,
)
