"""Administrative acts on a cluster under load: topics, replicas, leaders, settings, brokers."""

from __future__ import annotations

import msgspec

from urteil.harness.conformance.required_settings import LIMITS
from urteil.harness.scenario import ClusterSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import (
    DURABLE,
    IMPATIENT,
    REPLICATION,
    SENT_AGAIN,
    SOLE,
    cluster,
    fault,
)

LOAD = WorkloadSpec(topics=(DURABLE,))
PATIENT = WorkloadSpec(topics=(DURABLE,), delivery_timeout_ms=60_000)
REPEATED = WorkloadSpec(topics=(DURABLE,), options=SENT_AGAIN)
GROUP = WorkloadSpec(kind="group", topics=(DURABLE,), consumers=2)
SAFE = (*REPLICATION, "duplicate", "unclean_leader", "epoch_went_back")
FOUR = ClusterSpec(brokers=4)
"""More brokers than replicas, so that replicas can move."""

TOPICS = Scenario(
    name="topics",
    about="topics are created and deleted beside the load, the topic in use gets two more "
    "partitions, and a leader dies",
    suites=("administration",),
    cluster=cluster(),
    workload=GROUP,
    faults=(
        fault("topic_churn", "topic", 4, 8, count=4),
        fault("add_partitions", "topic", 6, 1, by=2),
        fault("crash", "leader", 10, 4),
    ),
    guarantees=SAFE,
    duration_s=20.0,
)

REASSIGN = Scenario(
    name="reassign",
    about="four brokers; every partition's leader is replaced by a broker without a replica, and "
    "a leader dies meanwhile: nothing is lost, and nothing stays on disks",
    suites=("administration",),
    cluster=FOUR,
    workload=PATIENT,
    faults=(fault("reassign", "topic", 4, 6), fault("crash", "leader", 5, 4)),
    guarantees=(*SAFE, "leftover_log"),
    duration_s=27.0,
    recovery_deadline_s=60.0,
)

REASSIGN_SOLE = Scenario(
    name="reassign-sole",
    about="partitions with one replica move to another broker under load, twice: no other replica "
    "has the records that the new one lacks",
    suites=("administration",),
    cluster=cluster(),
    workload=WorkloadSpec(topics=(SOLE,), delivery_timeout_ms=60_000),
    faults=(fault("reassign", "topic", 4, 3), fault("reassign", "topic", 11, 3)),
    guarantees=("lost_write", "phantom", "inconsistent_offset", "unclean_leader", "duplicate"),
    duration_s=18.0,
    recovery_deadline_s=60.0,
)

MOVE_DIRECTORIES = Scenario(
    name="move-directories",
    about="partitions with one replica move to another log directory of their broker under load, "
    "and back, while a client sends batches twice and too early",
    suites=("administration",),
    cluster=ClusterSpec(log_dirs=2),
    workload=WorkloadSpec(
        topics=(msgspec.structs.replace(SOLE, config={**SOLE.config, "segment.bytes": "16384"}),),
        delivery_timeout_ms=60_000,
        options=SENT_AGAIN,
    ),
    faults=(fault("move_directories", "topic", 4, 5),),
    guarantees=(
        "lost_write", "phantom", "inconsistent_offset", "duplicate", "sequence_gap", "hole",
    ),
    duration_s=15.0,
    recovery_deadline_s=60.0,
)  # fmt: skip
"""With one replica, no other broker has the data that a move loses; a copy is made segment by
segment. A client that resends records from before the move must be recognised after it."""

CANCELLED = Scenario(
    name="reassign-cancelled",
    about="four brokers; the reassignment of every leader is cancelled while it is under way: "
    "replicas stay where they are",
    suites=("administration",),
    cluster=FOUR,
    workload=PATIENT,
    faults=(
        fault("latency", "all->leader", 4, 5, latency_ms=800),
        fault("reassign", "topic", 5, 0.3, cancel=1),
    ),
    guarantees=(*SAFE, "unfinished_administration"),
    duration_s=31.0,
    recovery_deadline_s=15.0,
)
"""Replicas that fetch slowly, so that moves last long enough; the rest of the run is
undisturbed."""

RAISE_REPLICATION = Scenario(
    name="raise-replication",
    about="every partition gets a fourth replica and loses it again, then a leader dies",
    suites=("administration",),
    cluster=FOUR,
    workload=LOAD,
    faults=(fault("raise_replication", "topic", 4, 3), fault("crash", "leader", 12, 4)),
    guarantees=SAFE,
    duration_s=22.0,
)

PREFERRED = Scenario(
    name="preferred",
    about="preferred leaders are elected, there and back, while a follower dies and returns",
    suites=("administration",),
    cluster=cluster(),
    workload=LOAD,
    faults=(
        fault("elect_preferred", "topic", 4, 3),
        fault("crash", "straggler", 11, 3),
        fault("elect_preferred", "topic", 17, 2),
    ),
    guarantees=(*SAFE, "preferred_leader_ignored"),
    duration_s=24.0,
)

SETTINGS = Scenario(
    name="settings",
    about="min.insync.replicas is 1 while both followers sleep, then 2 again with new sessions of "
    "all brokers; the followers sleep once more: the leader alone may acknowledge only in between",
    suites=("administration",),
    cluster=cluster(),
    workload=IMPATIENT,
    faults=(
        fault("min_isr", "topic", 4, 17),
        fault("pause", "followers", 5, 6),
        fault("session_expired", "all", 17, 1),
        fault("pause", "followers", 32, 7),
    ),
    guarantees=(*REPLICATION, "unclean_leader", "epoch_went_back", "ack_below_min_isr"),
    duration_s=42.0,
)

RETENTION_CHANGED = Scenario(
    name="retention-changed",
    about="retention.ms is 2 s for 18 s: old segments are deleted under readers, while a client "
    "sends batches twice and too early; then a leader dies: every broker learns the settings",
    suites=("administration",),
    cluster=cluster(log_retention_check_interval_ms="1000", log_initial_task_delay_ms="500"),
    workload=REPEATED,
    faults=(fault("retention", "topic", 5, 18), fault("crash", "leader", 25, 4)),
    guarantees=(*SAFE, "sequence_gap", "kept_too_long"),
    duration_s=32.0,
)

ADD_BROKER = Scenario(
    name="add-broker",
    about="a broker is drained, emptied, joins again and gets its share under load",
    suites=("administration",),
    cluster=FOUR,
    workload=PATIENT,
    faults=(fault("add_broker", "b4", 4, 1),),
    guarantees=SAFE,
    duration_s=20.0,
    recovery_deadline_s=60.0,
)

REMOVE_BROKER = Scenario(
    name="remove-broker",
    about="the controller is drained and stopped, and returns",
    suites=("administration",),
    cluster=FOUR,
    workload=PATIENT,
    faults=(fault("remove_broker", "controller", 4, 3),),
    guarantees=SAFE,
    duration_s=20.0,
    recovery_deadline_s=60.0,
)

RECREATE_TOPIC = Scenario(
    name="recreate-topic",
    about="a topic is deleted while one of its replicas is down, and created again when that is "
    "back: it has only its own records, and disks have nothing of the old one",
    suites=("administration",),
    cluster=cluster(log_segment_delete_delay_ms="1000", log_initial_task_delay_ms="1000"),
    workload=PATIENT,
    faults=(fault("recreate_topic", "topic", 5, 6),),
    guarantees=(*SAFE, "leftover_log"),
    duration_s=27.0,
)

OFFICE_LOST = Scenario(
    name="office-lost",
    about="four brokers; /controller is deleted by hand while replicas move, and while a topic "
    "waits for its deletion: the next controller continues both",
    suites=("administration",),
    cluster=FOUR,
    workload=PATIENT,
    faults=(
        fault("latency", "all->leader", 4, 7, latency_ms=800),
        fault("reassign", "topic", 5, 8),
        fault("controller_deleted", "controller", 5.8, 1),
        fault("recreate_topic", "topic", 19, 6),
        fault("controller_deleted", "controller", 21, 1),
    ),
    guarantees=(*SAFE, "unfinished_administration"),
    duration_s=27.0,
    recovery_deadline_s=60.0,
)
"""Replicas that fetch slowly take long enough to catch up."""

UPGRADE = Scenario(
    name="upgrade",
    about="every broker is restarted in order, twice: newer code, then the newer protocol between "
    "brokers (--target kafka: 3.8.0 to 3.9.1)",
    suites=("upgrade",),
    cluster=msgspec.structs.replace(cluster(), older=True),
    workload=PATIENT,
    faults=(fault("upgrade", "all", 4, 0),),
    guarantees=SAFE,
    duration_s=15.0,
    recovery_deadline_s=60.0,
)

KNOWN_ANSWERS = Scenario(
    name="known-answers",
    about="no fault; a client asks all brokers questions with known answers about groups, topics, "
    "records and transactions of its own",
    suites=("administration",),
    cluster=ClusterSpec(config=LIMITS, racks=True),
    workload=WorkloadSpec(topics=(DURABLE,), rate_records_per_s=100, options={"questions": "1"}),
    guarantees=(*REPLICATION, "wrong_answer"),
    duration_s=60.0,
)
