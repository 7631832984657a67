"""A scenario of which the seed draws everything: the bounds of `anything`.

`DIMENSIONS` and `FAULTS` are all that may be drawn. What the drawn settings promise is derived from
them (harness/permits.py).
"""

from __future__ import annotations

from urteil.chaos.weighted_faults import RandomSchedule, WeightedFault
from urteil.harness.bounds import Bounds, Dimension, Place, Value
from urteil.harness.clients.libraries import AIOKAFKA, CONFLUENT, JAVA, KAFKA_PYTHON, VERIFIABLE
from urteil.harness.scenario import ClusterSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.chaos import ANCHORS, NETWORK, NEW_LEADER, PROCESSES
from urteil.harness.scenarios.transactions import CLEANUP

MOST_REPLICAS = 120
"""Of all partitions, so that two cores suffice for brokers, clients and final reads."""

Weighted = dict[Value, float]
Conditions = dict[str, tuple[Value, ...]]


def dimension(of: Place, name: str, values: Weighted, **only_with: tuple[Value, ...]) -> Dimension:
    """A dimension whose values have weights."""
    return Dimension(
        name=name,
        of=of,
        values=tuple(values),
        weights=tuple(values.values()),
        only_with=only_with,
    )


def up_to(most: int, *, least: int = 1) -> Weighted:
    """`least` to `most`, small numbers more often: of values up to 40, three in five are 1 or 2,
    one in eight is above 10."""
    return {n: n**-1.5 for n in range(least, most + 1)}


def mostly(default: Value, *others: Value) -> Weighted:
    """The default has three times the weight of all other values together."""
    return {default: 3.0 * len(others), **dict.fromkeys(others, 1.0)}


def evenly(*values: Value) -> Weighted:
    return dict.fromkeys(values, 1.0)


ANY_TOPICS, SEVERAL_TOPICS = ("append", "group", "compacted", "mixed"), ("commits", "transactions")
"""Committers commit offsets of the last topic, which has no records. Copiers write to the second
topic."""
PLAIN = ("append", "group", "compacted", "commits", "mixed")
"""The kinds of workloads with plain producers."""
IN_PYTHON = (KAFKA_PYTHON, CONFLUENT, AIOKAFKA)
MEMBERS = ("group", "mixed")
CLEANED: Conditions = {"cleanup.policy": ("compact", "compact,delete")}
DELETED: Conditions = {"cleanup.policy": (None, "compact,delete")}

CLUSTER = (
    dimension("cluster", "brokers", {3: 6, 4: 2, 5: 1, 6: 1}),
    dimension("cluster", "zookeepers", mostly(1, 3)),
    dimension("cluster", "controllers", evenly(0, 3)),
    dimension("cluster", "racks", mostly(False, True)),
    dimension("cluster", "log_dirs", mostly(1, 2)),
    dimension("brokers", "min.insync.replicas", evenly(1, 2)),
    dimension("brokers", "unclean.leader.election.enable", mostly(None, "true")),
    dimension("brokers", "replica.lag.time.max.ms", mostly(None, 10_000)),
    dimension("brokers", "log.retention.check.interval.ms", evenly(1_000, 5_000)),
    dimension("brokers", "log.cleaner.backoff.ms", evenly(500, 5_000)),
    dimension("brokers", "log.flush.scheduler.interval.ms", evenly(None, 500)),
    dimension("brokers", "log.flush.offset.checkpoint.interval.ms", evenly(None, 1_000)),
)

CLIENTS = (
    dimension("clients", "kind", evenly(*PLAIN, "transactions")),
    dimension("clients", "client", evenly(*IN_PYTHON, VERIFIABLE), kind=PLAIN),
    dimension("clients", "client", evenly(KAFKA_PYTHON, CONFLUENT, JAVA), kind=("transactions",)),
    dimension("clients", "topics", up_to(40), kind=ANY_TOPICS),
    dimension("clients", "topics", up_to(40, least=2), kind=SEVERAL_TOPICS),
    dimension("clients", "producers", up_to(4), client=IN_PYTHON),
    dimension("clients", "producers", up_to(2), client=(VERIFIABLE, JAVA)),
    dimension("clients", "consumers", up_to(3)),
    dimension("clients", "rate_records_per_s", evenly(60, 150, 300)),
    dimension("clients", "value_bytes", evenly(50, 100, 1_000)),
    dimension("clients", "keys", evenly(5, 50, 400, 4_000)),
    dimension("clients", "acks", mostly(-1, 1, 0), kind=PLAIN),
    dimension("clients", "idempotent", evenly(True, False), kind=PLAIN),
    dimension("clients", "in_flight", evenly(5, 1)),
    dimension("clients", "delivery_timeout_ms", evenly(4_000, 20_000, 60_000)),
    dimension("clients", "request_timeout_ms", evenly(1_500, 3_000)),
    dimension("clients", "isolation", mostly("read_uncommitted", "read_committed"), kind=PLAIN),
    dimension("clients", "isolation", evenly("read_committed"), kind=("transactions",)),
    dimension("options", "compression_type", evenly(None, "gzip", "snappy", "lz4", "zstd")),
    dimension("options", "linger_ms", evenly(None, 100)),
    dimension("options", "batch_size", mostly(None, 200, 4_096)),
    dimension("options", "timestamp_jitter_ms", mostly(None, 1_000), kind=PLAIN),
    dimension("options", "fetch_bytes", mostly(None, 65_536)),
    dimension(
        "options",
        "old_clients",
        mostly(None, True),
        client=(KAFKA_PYTHON,),
        kind=("append", "compacted"),
        compression_type=(None, "gzip"),
    ),
    dimension("options", "racks", evenly(True), racks=(True,)),
    dimension("options", "commit", mostly(None, "before"), kind=MEMBERS),
    dimension("options", "assignor", evenly("range", "cooperative"), kind=MEMBERS),
    dimension("options", "static", mostly(None, True), kind=MEMBERS, client=(KAFKA_PYTHON,)),
    dimension("options", "max_poll_records", mostly(None, 20), kind=MEMBERS),
    dimension(
        "options", "zombie_commits", mostly(None, True), kind=MEMBERS, client=(KAFKA_PYTHON,)
    ),
    dimension("options", "passers_by", mostly(None, 5), kind=MEMBERS),
    dimension("options", "repeated_rounds", mostly(None, 100), kind=PLAIN),
    dimension("options", "commits_per_s", evenly(5, 20), kind=("commits",)),
    dimension("options", "deletions", mostly(None, True), kind=("commits",)),
    dimension("options", "txn_records", evenly(3, 8, 30), kind=("transactions",)),
    dimension("options", "hold_ms", mostly(None, 400), kind=("transactions",), txn_records=(30,)),
    dimension("options", "aborts", evenly(0.1, 0.25, 0.5), kind=("transactions",)),
    dimension("options", "copiers", evenly(1, 2), kind=("transactions",)),
    dimension("options", "overdue_txns", mostly(None, 2), kind=("transactions",)),
    dimension("options", "late_produces", mostly(None, 5), kind=("transactions",)),
    dimension("options", "delayed_ends", mostly(None, 3), kind=("transactions",)),
)

TOPICS = (
    dimension("topic", "partitions", up_to(60)),
    dimension("topic", "replication_factor", {3: 5, 2: 2, 1: 1, 4: 1}),
    dimension("topic settings", "min.insync.replicas", {2: 3, 1: 2, 3: 1}),
    dimension("topic settings", "unclean.leader.election.enable", mostly(None, "false", "true")),
    dimension("topic settings", "cleanup.policy", mostly(None, "compact", "compact,delete")),
    dimension("topic settings", "segment.bytes", evenly(None, 16_384, 65_536)),
    dimension("topic settings", "segment.ms", mostly(None, 3_000, 10_000)),
    dimension("topic settings", "retention.ms", mostly(None, 12_000, 600_000), **DELETED),
    dimension("topic settings", "retention.bytes", mostly(None, 65_536), **DELETED),
    dimension("topic settings", "min.cleanable.dirty.ratio", evenly(0.01, 0.5), **CLEANED),
    dimension("topic settings", "max.compaction.lag.ms", evenly(None, 3_000), **CLEANED),
    dimension("topic settings", "delete.retention.ms", evenly(None, 1_000), **CLEANED),
    dimension("topic settings", "flush.ms", mostly(None, 500, 1_500)),
    dimension("topic settings", "flush.messages", mostly(None, 20)),
    dimension("topic settings", "index.interval.bytes", mostly(None, 256)),
    dimension("topic settings", "max.message.bytes", mostly(None, 131_072)),
    dimension(
        "topic settings",
        "message.timestamp.type",
        mostly("CreateTime", "LogAppendTime"),
    ),
    dimension(
        "topic settings",
        "compression.type",
        mostly(None, "gzip", "snappy", "lz4", "zstd", "uncompressed"),
        old_clients=(None,),
    ),
)

SCHEDULE = (dimension("faults", "at_once", evenly(2, 3)),)

DIMENSIONS = (*CLUSTER, *CLIENTS, *TOPICS, *SCHEDULE)

DISKS = (
    WeightedFault(fault="power_cut", targets=("leader", "follower"), weight=2, brings=NEW_LEADER),
    WeightedFault(fault="disk_full", targets=("leader", "follower")),
    WeightedFault(fault="disk_readonly", targets=("leader", "follower")),
    WeightedFault(fault="disk_slow", targets=("leader", "follower"), options={"delay_ms": 50}),
    WeightedFault(fault="disk_gone", targets=("leader", "follower")),
)
SESSIONS = (
    WeightedFault(fault="session_expired", targets=("leader", "controller"), duration_s=(1, 2)),
    WeightedFault(fault="controller_deleted", targets=("controller",), duration_s=(1, 2)),
    WeightedFault(fault="crash", targets=("zookeeper_majority",), duration_s=(2, 6), alone=True),
)
FRAMES = (
    WeightedFault(fault="lose_answer", targets=("client->leader",), options={"api": "Produce"}),
    WeightedFault(
        fault="duplicate_request", targets=("client->leader",), options={"api": "Produce"}
    ),
    WeightedFault(
        fault="delay_answer",
        targets=("follower->leader",),
        options={"api": "Fetch", "delay_ms": (300, 2_000)},
    ),
)
CLIENT_FAULTS = (
    WeightedFault(
        fault="kill_client",
        targets=("producer", "reader", "member", "transactional", "copier", "committer"),
        weight=2,
        duration_s=(1, 3),
    ),
    WeightedFault(
        fault="pause_client", targets=("producer", "reader", "member", "transactional", "copier")
    ),
    WeightedFault(fault="slow_poll", targets=("member",)),
)
ADMINISTRATION = (
    WeightedFault(fault="min_isr", targets=("topic",), weight=2),
    WeightedFault(fault="retention", targets=("topic",)),
    WeightedFault(fault="delete_records", targets=("topic",), alone=True),
    WeightedFault(
        fault="quota", targets=("clients",), options={"producer_byte_rate": (20_000.0, 100_000.0)}
    ),
    WeightedFault(fault="broker_defaults", targets=("brokers",), alone=True),
    WeightedFault(fault="topic_churn", targets=("topic",), weight=2, alone=True),
    WeightedFault(fault="add_partitions", targets=("topic",), weight=2, alone=True),
    WeightedFault(fault="reassign", targets=("topic",), weight=2, alone=True),
    WeightedFault(fault="raise_replication", targets=("topic",), alone=True),
    WeightedFault(fault="elect_preferred", targets=("topic",), weight=2, alone=True),
    WeightedFault(fault="move_directories", targets=("topic",), weight=2, alone=True),
)
"""Acts that wait for every broker run alone: another fault would prevent their end."""

FAULTS = (
    *(*PROCESSES, *NETWORK, *DISKS, *SESSIONS, *FRAMES),
    *(*CLIENT_FAULTS, *ADMINISTRATION),
)

ANYTHING = Scenario(
    name="anything",
    about="the seed draws everything: brokers, topics, settings, clients, administration, and "
    "faults of any kind, two or three at once; what is promised follows from the settings",
    suites=("chaos",),
    cluster=ClusterSpec(
        config={**CLEANUP, "log.initial.task.delay.ms": "500"}, records_flushes=True
    ),
    workload=WorkloadSpec(),
    draw=RandomSchedule(choices=FAULTS, pause_s=(0.5, 3.0), anchors=ANCHORS, voids=("retention",)),
    bounds=Bounds(dimensions=DIMENSIONS, most_replicas=MOST_REPLICAS),
    guarantees=("phantom",),
    duration_s=30.0,
    recovery_deadline_s=60.0,
)
