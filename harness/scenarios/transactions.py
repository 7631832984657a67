"""Transactions: clients that die, pause or share an id; coordinators that fail in between."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from urteil.harness.scenario import ClusterSpec, FaultSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import DELIVERY, REPLICATION, fault

CLEANUP = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
}
"""Coordinators check every second for transactions past their timeout, and for ids that have been
unused for a week."""
SAFE = {"min.insync.replicas": "2"}
OFTEN = SAFE | {
    "cleanup.policy": "compact",
    "segment.bytes": "16384",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "3000",
    "segment.ms": "3000",
}
"""Settings of a topic that is compacted all the time."""
SOURCE, SINK = TopicSpec(config=SAFE), TopicSpec(name="urteil-out", config=SAFE)
MANY = TopicSpec(partitions=9, config=SAFE)
LONE = TopicSpec(partitions=9, replication_factor=1, config={"min.insync.replicas": "1"})
PAIR = TopicSpec(partitions=1, replication_factor=2, config={"min.insync.replicas": "1"})
DECISIONS = "__transaction_state"
ONE_COORDINATOR = {"transaction.state.log.num.partitions": "1"}
ENDS = ("torn_txn", "aborted_read", "precommitted_read", "hanging_txn")
ATOMICITY = (*REPLICATION, *ENDS)
KEYS = ("latest_value_lost", "stale_value_visible", "offset_renumbered")
STEPS = ("offsets_not_atomic", "processed_twice", "unprocessed")


def scenario(
    name: str,
    about: str,
    *faults: FaultSpec,
    duration_s: float,
    load: WorkloadSpec,
    guarantees: tuple[str, ...] = (),
    must_find: tuple[str, ...] = (),
    config: Mapping[str, str] = {},
    suite: str = "transactions",
) -> Scenario:
    """Transactions over three partitions on three brokers that check for expired ones every second,
    judged by ATOMICITY and `guarantees`."""
    return Scenario(
        name=name,
        about=about,
        suites=(suite,),
        cluster=ClusterSpec(config={**CLEANUP, **config}),
        workload=load,
        faults=faults,
        guarantees=(*ATOMICITY, *guarantees),
        must_find=must_find,
        duration_s=duration_s,
    )


def writers(count: int = 3, /, **options: str) -> WorkloadSpec:
    """`count` writers of transactions."""
    return WorkloadSpec(
        kind="transactions",
        topics=(SOURCE,),
        producers=count,
        rate_records_per_s=150,
        isolation="read_committed",
        options=options,
    )


def copiers(**options: str) -> WorkloadSpec:
    """Three writers, and a group (of two) that copies their records in transactions."""
    load = writers(**{"copiers": "2", **options})
    return replace(load, topics=(SOURCE, SINK))


TRANSACTIONS = scenario(
    "transactions",
    "transactions over several partitions, committed and aborted; a leader dies: a transaction "
    "is visible completely or not at all, once it is committed",
    fault("crash", "leader", 6, 5),
    load=writers(),
    duration_s=16.0,
)

TRANSACTIONS_CALM = scenario(
    "transactions-calm",
    "transactions without faults; a group copies them and moves its offsets in transactions of "
    "its own",
    load=copiers(),
    guarantees=("no_progress",),
    duration_s=24.0,
)

RESTART = scenario(
    "transactions-restart",
    "half of the transactions are aborted, all stay open for 400 ms with a batch for each "
    "record, and readers get few at once; leaders shut down and return: aborted records stay "
    "invisible, open ones unread",
    fault("shutdown", "leader", 5, 3),
    fault("shutdown", "leader", 12, 3),
    load=writers(6, aborts="0.5", hold_ms="400", batch_size="200", fetch_bytes="512"),
    duration_s=18.0,
)

CLEANED = Scenario(
    name="transactions-cleaned",
    about="aborted transactions in a compacted log that is cleaned all the time, while leaders "
    "come and go: an aborted record is not a value of its key",
    suites=("transactions",),
    cluster=ClusterSpec(config={**CLEANUP, "log.cleaner.backoff.ms": "500"}),
    workload=replace(writers(aborts="0.4"), topics=(TopicSpec(config=OFTEN),), keys=2500),
    faults=(fault("shutdown", "leader", 6, 3), fault("crash", "leader", 14, 4)),
    guarantees=("aborted_read", "precommitted_read", "hanging_txn", *KEYS),
    duration_s=24.0,
)

HELD_OPEN = replace(
    CLEANED,
    name="transactions-held-open",
    about="transactions stay open while their segments close, and 40 % of them are aborted; no "
    "fault: uncommitted records supersede nothing, and no coordinator ends a transaction early",
    suites=("transactions",),
    workload=replace(
        CLEANED.workload,
        producers=8,
        rate_records_per_s=400,
        keys=6000,
        options={"aborts": "0.4", "hold_ms": "800", "txn_records": "32", "rests": "4"},
    ),
    faults=(),
    duration_s=20.0,
)

KILLED = scenario(
    "transactional-killed",
    "SIGKILL of writers in their transactions, which stay open for 300 ms: one returns after 1 "
    "s and takes over, two after 7 s, when the coordinator has ended theirs, three never: open "
    "transactions are aborted",
    fault("kill_client", "t1", 3, 1),
    fault("kill_client", "t2,t3", 7, 7),
    fault("kill_client", "t5,t6,t7", 12, 1, for_good=True),
    load=writers(7, transaction_timeout_ms="4000", hold_ms="300"),
    duration_s=17.0,
)

PAUSED = scenario(
    "transactional-paused",
    "SIGSTOP of three writers past their transactions' timeout of 4 s; two of them resume "
    "beside their successors, and a client of raw requests continues expired transactions and "
    "ends its successor's: resumed writers are fenced",
    fault("pause_client", "t1,t2,t3", 3, 9),
    fault("second_session", "t1,t2", 8, 8),
    load=writers(4, transaction_timeout_ms="4000", overdue_txns="4"),
    guarantees=("zombie_write",),
    duration_s=19.0,
)

SHARED_ID = scenario(
    "shared-transactional-id",
    "second sessions of live writers: each fences the other, and a replaced writer writes nothing",
    fault("second_session", "transactionals", 4, 10),
    load=writers(),
    guarantees=("zombie_write",),
    duration_s=18.0,
)

UNSENT_MARKERS = scenario(
    "unsent-markers",
    "a coordinator that cannot send to other brokers leaves their ISRs, and is killed once a "
    "transaction's end is in its log and its markers are not written; most writers die before "
    "there is a successor, which sends the markers to every partition",
    fault("partition", "leader->all", 3, 13, topic=DECISIONS, partition=0),
    FaultSpec(
        fault="crash",
        target="leader",
        at_s=9,
        after_event="decision",
        duration_s=6,
        options={"topic": DECISIONS, "partition": 0},
    ),
    fault("kill_client", "t1,t2,t3,t4,t5,t6,t7", 10.3, 5, for_good=True),
    load=replace(writers(10), topics=(MANY,)),
    duration_s=24.0,
    config=ONE_COORDINATOR,
)
"""The coordinator dies after it left the ISRs of other leaders: until then their producers wait for
it. Partitions that it leads itself have their markers; with many partitions, others always lead
some."""

LOST_DECISION = scenario(
    "lost-decision",
    "a coordinator's followers get no answers; writers request commits and are killed, and so "
    "is the coordinator: no marker of a decision that no other log has",
    fault("partition", "followers->leader", 3, 9, answers_only=True, topic=DECISIONS, partition=0),
    fault("kill_client", "t1,t2,t3,t4,t5,t6,t7", 5.4, 9),
    fault("crash", "leader", 5.6, 6, topic=DECISIONS, partition=0),
    load=writers(8, aborts="0", hold_ms="1000"),
    duration_s=22.0,
    config={**ONE_COORDINATOR, "replica.lag.time.max.ms": "15000"},
)

LOST_ADDITIONS = replace(
    scenario(
        "lost-additions",
        "a coordinator's followers get no answers while long transactions add partitions; it dies: "
        "its successor knows every partition of a transaction",
        fault(
            "partition", "followers->leader", 3, 9, answers_only=True, topic=DECISIONS, partition=0
        ),
        fault("crash", "leader", 6, 6, topic=DECISIONS, partition=0),
        load=replace(writers(10, txn_records="32", aborts="0.5"), topics=(LONE,)),
        duration_s=22.0,
        config={**ONE_COORDINATOR, "replica.lag.time.max.ms": "15000"},
    ),
    guarantees=(*DELIVERY, *ENDS),
)
"""One replica for each partition, so that the records of its leader do not wait for followers that
receive no answers."""

LOST_MARKERS = scenario(
    "lost-markers",
    "two replicas; the follower gets no answers from a leader, which dies with markers that no "
    "other replica has: its successor gets them again",
    fault("partition", "successor->leader", 5, 9.5, answers_only=True),
    fault("crash", "leader", 6.7, 8.3),
    load=replace(writers(12, hold_ms="1500"), topics=(PAIR,)),
    duration_s=20.0,
    config={"transaction.state.log.num.partitions": "12", "replica.lag.time.max.ms": "15000"},
)
"""All records of an open transaction are on both replicas. After the cut its coordinator ends it:
the third broker reaches both."""

MOVED = scenario(
    "transactions-moved",
    "other live brokers become coordinators of transactions, and give them back, twice; writers "
    "die before and in between, and a client of raw requests takes over an id again and again: "
    "open transactions keep their timeout, and no epoch is assigned twice",
    fault("kill_client", "t4,t5,t6", 3.6, 1, for_good=True),
    fault("elect_preferred", "topic", 4, 5, topic=DECISIONS),
    fault("kill_client", "t1,t2", 5, 1),
    fault("elect_preferred", "topic", 14, 3, topic=DECISIONS),
    load=writers(9, hold_ms="300", takeovers="90"),
    guarantees=("zombie_write",),
    duration_s=22.0,
)

EXACTLY_ONCE = scenario(
    "exactly-once",
    "copies in transactions (KIP-447), many of them aborted; copiers die together with their "
    "group's coordinator, then a coordinator of transactions: each input has one output, and "
    "offsets that fit",
    fault("kill_client", "x1,x2,x3", 6, 3),
    fault("crash", "coordinator", 6.4, 5),
    fault("crash", "coordinator", 19, 5, transactional_id="urteil-group-x1"),
    load=copiers(copiers="3", aborts="0.6"),
    guarantees=STEPS,
    duration_s=28.0,
    suite="exactly_once",
)

PAUSED_COPIER = scenario(
    "paused-copier",
    "a copier sleeps past its session and its transaction, beside a consumer that sends offsets "
    "to transactions in past and present generations, fetches stable offsets, and commits "
    "without a generation: each input has one output",
    fault("pause_client", "copier", 4, 8),
    fault("crash", "coordinator", 15, 5),
    fault("second_session", "copier", 21, 4),
    load=copiers(
        transaction_timeout_ms="4000",
        session_timeout_ms="4000",
        zombie_offsets="20",
        present_offsets="1",
    ),
    guarantees=(*STEPS, "zombie_commit", "commit_register"),
    duration_s=29.0,
    suite="exactly_once",
)

DELAYED_END = scenario(
    "delayed-end-txn",
    "a delayed EndTxn arrives in the next transaction of its producer (KAFKA-17754): the "
    "protocol of 3.9 cannot distinguish them, and a torn transaction is permitted",
    load=writers(delayed_ends="12"),
    must_find=("torn_txn",),
    duration_s=14.0,
)

LATE_PRODUCE = scenario(
    "late-produce",
    "delayed records of aborted transactions arrive while their producer's next transaction is "
    "open, which lacks their partition (KIP-890): no transaction stays open that no coordinator "
    "knows",
    load=writers(late_produces="12"),
    duration_s=14.0,
)
