"""Schedules that reproduce published bugs of Apache Kafka (harness/known_bugs/). `urteil bugs`
plays them; no suite does."""

from __future__ import annotations

from msgspec.structs import replace

from urteil.harness.scenario import ClusterSpec, FaultSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.administration import KNOWN_ANSWERS, RECREATE_TOPIC
from urteil.harness.scenarios.common import DURABLE, IMPATIENT, REPLICATION, cluster, fault
from urteil.harness.scenarios.compaction import CLEANING, COMPACTION_CALM, EAGER, PATIENT
from urteil.harness.scenarios.disks import POWER_CUT_SEGMENTS
from urteil.harness.scenarios.groups import POSITIONS, POSITIONS_TOPIC
from urteil.harness.scenarios.quorum import TARGET as KRAFT

LOAD = WorkloadSpec(topics=(DURABLE,))
PAIR = TopicSpec(replication_factor=2, config={"min.insync.replicas": "1"})
BRIEF_SEGMENTS = TopicSpec(
    config={"min.insync.replicas": "1", "segment.bytes": "8192"}
    | {"retention.ms": "600000", "retention.bytes": "32768"}
)

UNTRIMMED_SEGMENTS = replace(
    COMPACTION_CALM,
    name="preallocated-segments",
    about="segments are preallocated, and cleaned all the time, without faults: the cleaner reads "
    "its own output again (KAFKA-5431)",
    suites=(),
    cluster=replace(CLEANING, config=CLEANING.config | {"log.preallocate": "true"}),
    workload=replace(COMPACTION_CALM.workload, topics=(DURABLE, EAGER)),
)

CLEANED_WITHIN_LAG = replace(
    UNTRIMMED_SEGMENTS,
    name="cleaned-within-lag",
    about="the cleaner looks at logs all the time while their first segments are closed: it cleans "
    "none of them within min.compaction.lag.ms (KAFKA-6429)",
    cluster=cluster(log_cleaner_backoff_ms="20", log_cleaner_threads="1", log_preallocate="true"),
    workload=replace(UNTRIMMED_SEGMENTS.workload, topics=(DURABLE, replace(PATIENT, partitions=6))),
    guarantees=("compacted_too_early",),
    duration_s=20.0,
)
"""Files of a preallocated log take long to open, and the log is locked meanwhile."""

SMALL_LOADS = Scenario(
    name="offsets-loaded-in-pieces",
    about="clients commit offsets of groups without members; their coordinator dies, and the next "
    "one loads the offsets in pieces of 4 KiB: the last commit counts (KAFKA-5600)",
    cluster=cluster(offsets_load_buffer_size="4096"),
    workload=WorkloadSpec(
        kind="commits",
        topics=(DURABLE, POSITIONS_TOPIC),
        consumers=4,
        rate_records_per_s=100,
    ),
    faults=(fault("crash", "coordinator", 8, 5),),
    guarantees=POSITIONS,
    duration_s=18.0,
)

OLDER_PROTOCOL_COMMITS = replace(
    SMALL_LOADS,
    name="offsets-of-older-protocol",
    about="clients commit offsets of groups without members to brokers that speak an older "
    "protocol and search for expired offsets all the time; their coordinator dies, and the next "
    "one loads the offsets: none has expired (KAFKA-8069)",
    cluster=cluster(
        inter_broker_protocol_version="2.0",
        log_message_format_version="2.0",
        offsets_retention_check_interval_ms="500",
    ),
    workload=replace(SMALL_LOADS.workload, options={"commits_epochs": "false"}),
)

REFILLED_REPLICA = Scenario(
    name="refilled-replica",
    about="the first records of idempotent producers are deleted, then a follower returns with "
    "an empty disk: it takes their later records without the earlier ones (KAFKA-6003)",
    cluster=cluster(),
    workload=replace(LOAD, rate_records_per_s=60),
    faults=(
        fault("delete_records", "topic", 5, 1, once=True),
        fault("disk_emptied", "straggler", 8, 2),
    ),
    guarantees=("replica_divergence", "slow_recovery"),
    duration_s=22.0,
    recovery_deadline_s=12.0,
)
"""A low rate, so that each record is a batch of its own: none is deleted in part."""

REFILLED_WITHIN_BATCH = replace(
    REFILLED_REPLICA,
    name="refilled-within-batch",
    about="records are deleted up to the middle of a batch, then a follower returns with an empty "
    "disk: it takes that batch (KAFKA-6975)",
    workload=replace(LOAD, options={"linger_ms": "200"}),
)

CUT_SNAPSHOT = Scenario(
    name="power-cut-snapshot",
    about="a broker whose logs roll all the time loses power before the producer snapshots of the "
    "last rolls are on disk: it starts without them (KAFKA-5747)",
    cluster=cluster(log_flush_offset_checkpoint_interval_ms="100"),
    workload=WorkloadSpec(
        topics=(TopicSpec(partitions=12, config=DURABLE.config | {"segment.bytes": "16384"}),),
        rate_records_per_s=200,
    ),
    faults=(fault("power_cut", "follower", 30, 4, snapshots=True),),
    guarantees=(*REPLICATION, "duplicate", "unexpected_exit"),
    duration_s=42.0,
)
"""Recovery begins at the recovery point, and a segment's begin is one as soon as the segment before
it is flushed. Brokers write recovery points half a minute after their start for the first time."""

LATE_REGISTRATION = Scenario(
    name="late-registration",
    about="a broker loses its ZooKeeper session and gets ZooKeeper's answers late: the controller "
    "knows its new epoch first, and the broker follows its commands (KAFKA-9839)",
    cluster=cluster(),
    workload=LOAD,
    faults=(
        FaultSpec(
            fault="latency",
            target="bystander->zookeeper",
            at_s=4,
            duration_s=9,
            options={"latency_ms": 500, "answers_only": True},
            choice="late-registration",
        ),
        FaultSpec(
            fault="session_expired",
            target="bystander",
            at_s=6,
            duration_s=2,
            choice="late-registration/1",
        ),
    ),
    guarantees=(*REPLICATION, "slow_recovery", "disagreement"),
    duration_s=20.0,
    recovery_deadline_s=15.0,
)
"""Of the two brokers that are not the controller both choices select the same one."""

UNTRUNCATED_LEADER = Scenario(
    name="untruncated-leader",
    about="a leader with records that its one follower lacks hands over to it, cannot reach it to "
    "truncate, and leads again when the follower dies with records of its own: that one truncates "
    "by an epoch that the leader does not have (KAFKA-6361)",
    cluster=cluster(replica_lag_time_max_ms="20000"),
    workload=replace(IMPATIENT, topics=(PAIR,), producers=5),
    faults=(
        fault("blackhole", "follower<->leader", 5, 10, api="Fetch"),
        fault("blackhole", "follower<->leader", 5, 10, api="OffsetForLeaderEpoch"),
        fault("elect_preferred", "topic", 6.5, 20),
        FaultSpec(fault="crash", target="leader", at_s=9.5, duration_s=7),
    ),
    guarantees=(*REPLICATION, "unclean_leader", "epoch_lineage"),
    duration_s=30.0,
)
"""Both are in sync all the time. The first leader has no record of the epoch between its two."""

DELETED_BEYOND_WATERMARK = Scenario(
    name="deleted-beyond-watermark",
    about="a leader of small segments deletes them by size while no follower reaches it: it "
    "keeps what they do not have, and they fetch on (KAFKA-5634)",
    cluster=cluster(replica_lag_time_max_ms="12000", log_retention_check_interval_ms="1000"),
    workload=replace(LOAD, topics=(BRIEF_SEGMENTS,), acks=1, idempotent=False),
    faults=(
        fault("partition", "successor->leader", 24, 9, answers_only=True),
        fault("partition", "straggler->leader", 24, 20, answers_only=True),
    ),
    guarantees=(*REPLICATION, "slow_recovery"),
    duration_s=54.0,
    recovery_deadline_s=9.0,
)
"""Brokers look for segments to delete from half a minute after their start on. The successor
returns while both are still in the ISR, the straggler when neither is."""

UNCACHED_EPOCH = Scenario(
    name="uncached-epoch",
    about="a follower with records of its own epoch asks a leader that has none of its own where "
    "they end, and the leader dies: the follower keeps what is committed (KAFKA-7415)",
    cluster=cluster(replica_lag_time_max_ms="30000"),
    workload=replace(IMPATIENT, topics=(PAIR,), producers=5),
    faults=(
        fault("lose_answer", "follower->leader", 5, 18, api="Fetch", times=0),
        fault("blackhole", "leader->follower", 5, 18, api="OffsetForLeaderEpoch"),
        fault("blackhole", "client->leader", 6, 17, api="Produce"),
        fault("elect_preferred", "topic", 7, 3),
        fault("crash", "leader", 18, 6),
    ),
    guarantees=(*REPLICATION, "unclean_leader"),
    duration_s=34.0,
)
"""The follower has the last committed records, and does not know that they are committed. It leads
for three seconds, and its records of that time cause its OffsetForLeaderEpoch request."""

LEADER_WITHOUT_RECORDS = Scenario(
    name="leader-without-records",
    about="a follower that lacks an epoch of its leader is elected, gets no record, and hands the "
    "leadership back: it drops the epoch without records, and follows (KAFKA-10706)",
    cluster=cluster(replica_lag_time_max_ms="6000"),
    workload=replace(IMPATIENT, topics=(PAIR,), producers=5),
    faults=(
        fault("blackhole", "follower<->leader", 5, 8, api="Fetch"),
        fault("blackhole", "follower<->leader", 5, 8, api="OffsetForLeaderEpoch"),
        fault("blackhole", "client->follower", 5, 18, api="Produce"),
        fault("elect_preferred", "topic", 6.5, 3),
    ),
    guarantees=(*REPLICATION, "slow_recovery"),
    duration_s=36.0,
    recovery_deadline_s=10.0,
)
"""The change of the preferred leader begins an epoch of the first leader, and one of the second.
The last fault ends when a follower that does not follow has left the ISR."""

UNSEEN_RESTART = Scenario(
    name="unseen-restart",
    about="a broker restarts while the controller stands still within its ZooKeeper session, and "
    "then finds the same brokers registered as before: it sends the new process its replicas "
    "(KAFKA-1120)",
    cluster=cluster(zookeeper_session_timeout_ms="40000", controlled_shutdown_enable="false"),
    workload=replace(LOAD, topics=(replace(DURABLE, partitions=1),)),
    faults=(fault("pause", "controller", 5, 12), fault("shutdown", "follower", 6, 1)),
    guarantees=(*REPLICATION, "slow_recovery"),
    duration_s=28.0,
    recovery_deadline_s=10.0,
)
"""A controlled shutdown would need the controller. Without one, the broker closes its session. It
leads nothing, so that clients continue: only a running follower is selected."""

ZOMBIE_CONTROLLER = Scenario(
    name="zombie-controller",
    about="a controller loses its ZooKeeper session while it waits to elect a preferred leader; "
    "with the next session it is not the controller any more, and elects nobody (KAFKA-3083)",
    cluster=cluster(
        zookeeper_session_timeout_ms="6000",
        auto_leader_rebalance_enable="true",
        leader_imbalance_per_broker_percentage="0",
    ),
    workload=LOAD,
    faults=(
        fault("shutdown", "bystander", 4, 1),
        fault("controller_deleted", "controller", 20, 4),
        fault("partition", "controller->zookeeper", 22.5, 7),
    ),
    guarantees=(*REPLICATION, "epoch_went_back", "slow_recovery"),
    duration_s=36.0,
    recovery_deadline_s=15.0,
)
"""The broker that was shut down leads nothing until a controller elects it, five seconds after the
controller's own election. The cut begins before that moment, and ends when there is another
controller, but before that one's own five seconds."""

DIVERGING_FETCH = Scenario(
    name="diverging-fetch",
    about="a leader dies with a long tail that no other replica has, and returns to a successor "
    "with a shorter log: its fetch beyond that log's end makes it no member of the ISR, and the "
    "successor may die (KAFKA-13141)",
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=replace(IMPATIENT, producers=5, rate_records_per_s=120),
    faults=(
        fault("partition", "followers->leader", 4, 8, answers_only=True),
        fault("crash", "leader", 10, 3),
        FaultSpec(
            fault="lose_request",
            target="client->leader",
            at_s=11,
            after_event="election",
            within_s=8,
            duration_s=12,
            options={"api": "Produce", "occurrence": 30, "times": 0},
        ),
        fault("delay_answer", "followers->leader", 15.3, 12, api="Fetch", times=0, delay_ms=4000),
        FaultSpec(
            fault="crash",
            target="leader",
            at_s=15.3,
            after_event="isr_growth",
            within_s=15,
            duration_s=6,
        ),
    ),
    guarantees=(*REPLICATION, "unclean_leader"),
    duration_s=34.0,
)
"""The first leader is the preferred one, so it leads when its successor dies. The producers reach
the successor with a few requests, fewer records than the tail; its answers are so late that the
first leader cannot have fetched them by then."""

LARGEST_TIMESTAMP = Scenario(
    name="largest-timestamp",
    about="batches of several records whose timestamps rise and fall, without faults: a lookup of "
    "the largest timestamp returns the offset of its record (KAFKA-16310)",
    cluster=cluster(),
    workload=replace(LOAD, options={"timestamp_jitter_ms": "400", "linger_ms": "100"}),
    guarantees=("time_index_wrong",),
    duration_s=10.0,
)

CHANGED_DEFAULTS = Scenario(
    name="changed-defaults",
    about="an administrator changes a default of all brokers twice, then a follower dies: a topic "
    "keeps its own min.insync.replicas of 3 (KAFKA-9254)",
    cluster=cluster(),
    workload=replace(IMPATIENT, topics=(TopicSpec(config={"min.insync.replicas": "3"}),)),
    faults=(
        fault("broker_defaults", "all", 4, 14),
        fault("crash", "follower", 8, 8),
    ),
    guarantees=(*REPLICATION, "ack_below_min_isr"),
    duration_s=20.0,
)

UNFLUSHED_DIRECTORY = replace(
    POWER_CUT_SEGMENTS,
    name="power-cut-directories",
    about="all machines lose power at once, and with it the segments of the last seconds whose "
    "directory was not flushed: none that was declared as flushed (KAFKA-3968)",
    suites=(),
    cluster=ClusterSpec(
        records_flushes=True, config={"log.flush.offset.checkpoint.interval.ms": "1000"}
    ),
    workload=replace(POWER_CUT_SEGMENTS.workload, rate_records_per_s=150),
    faults=(fault("power_cut", "all", 30, 2),),
    duration_s=36.0,
)
"""Releases before 3.5 write no recovery point in their first 30 s, and lack the setting for it
(`log.initial.task.delay.ms`)."""

LOST_EPOCHS = Scenario(
    name="power-cut-epochs",
    about="a follower loses power and the files of its leader epochs, in the first epoch of its "
    "partitions: recovery finds the epochs in the logs (KAFKA-10432)",
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("power_cut", "follower", 6, 3, epochs=True),),
    guarantees=(*REPLICATION, "duplicate", "epoch_lineage"),
    duration_s=16.0,
)

OLD_LOG_OF_TOPIC = replace(
    RECREATE_TOPIC,
    name="old-log-of-topic",
    about="a topic is deleted and created again while one of its replicas is down, which returns "
    "with the log of the old topic: it follows the new one (KAFKA-14616)",
    suites=(),
    guarantees=(*REPLICATION, "slow_recovery"),
    duration_s=32.0,
    recovery_deadline_s=12.0,
    target=KRAFT,
)

NEW_REPLICAS_LOST = Scenario(
    name="crash-at-creation",
    about="a broker dies when it has created the replicas of a topic and not flushed their ids: "
    "it starts again (KAFKA-16814)",
    cluster=cluster(background_threads="1"),
    workload=LOAD,
    faults=(fault("crash_at_creation", "follower", 5, 4),),
    guarantees=(*REPLICATION, "slow_recovery"),
    duration_s=16.0,
    target=KRAFT,
)

COLLIDING_NAMES = replace(
    KNOWN_ANSWERS,
    name="colliding-names",
    about="no fault; a client asks all brokers questions with known answers about topics: one that "
    "was deleted is created again, with periods in its name (KAFKA-14337)",
    suites=(),
    workload=replace(
        KNOWN_ANSWERS.workload, options={"questions": "1", "question_subject": "topics"}
    ),
    duration_s=20.0,
    target=KRAFT,
)

UNDONE_CHANGES = Scenario(
    name="undone-changes",
    about="the quorum's leader is cut off from the other controllers and appends changes of "
    "settings that it cannot commit: it undoes them when it learns of its successor (KAFKA-14946)",
    cluster=ClusterSpec(controllers=3),
    workload=replace(
        LOAD,
        topics=(TopicSpec(config={"min.insync.replicas": "2", "segment.ms": "700000000"}),),
    ),
    faults=(
        fault("partition", "quorum_leader<->quorum", 5, 10),
        fault("uncommitted_settings", "topic", 5.2, 15, wait_ms=500),
    ),
    guarantees=(*REPLICATION, "quorum_log", "undone_administration"),
    duration_s=26.0,
    target=KRAFT,
)

UNRESIGNED_LEADER = Scenario(
    name="unresigned-leader",
    about="the quorum's leader reaches all brokers and no controller for long: it resigns "
    "(KAFKA-15489)",
    cluster=ClusterSpec(controllers=3),
    workload=LOAD,
    faults=(fault("partition", "quorum_leader<->quorum", 5, 24),),
    guarantees=(*REPLICATION, "quorum_votes", "deposed_controller"),
    duration_s=32.0,
    target=KRAFT,
)
