"""The tables of evidence that clients' journals become."""

from __future__ import annotations

from urteil.harness.evidence.columns import (
    ACKS,
    CLIENT,
    COMPLETE_NS,
    COUNT,
    ERROR,
    GENERATION,
    GROUP,
    IDEMPOTENT,
    INVOKE_NS,
    ISOLATION,
    KEY,
    LEADER_EPOCH,
    MEMBER,
    MEMBER_EPOCH,
    NEEDED_PLACE,
    OFFSET,
    OUTCOME,
    PARTITION,
    PLACE,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    SEQUENCE,
    SESSION,
    TIMESTAMP,
    TOPIC,
    TOPIC_ID,
    TXN,
    VALUE_ID,
    WHOSE,
    CallOrder,
    Reference,
    Table,
    When,
    flag,
    int32,
    int64,
    text,
)
from urteil.harness.evidence.limits import COUNT_END

_OK = When("when the outcome is ok", sql="x.outcome = 'ok'")
_HAS_OFFSET = When("when the offset is known", sql="x.offset >= 0")
_ANSWERED = When("when the attempt was answered", sql="x.outcome <> 'info'")
_COMPLETE = When(
    "in complete final passes", holds=lambda row: bool(row["final"] and row["complete"])
)
_ACKNOWLEDGED = When("when the member acknowledged the record", sql="x.acknowledgement IS NOT NULL")
_RECORDED_BY = (
    CLIENT.but(required=True, import_needs=True),
    SESSION.but(required=True, import_default=0),
)
_IN_GROUP = (*WHOSE, GROUP.but(required=True), GENERATION, MEMBER)

TABLES = (
    Table(
        name="clients",
        row="session",
        meaning="One session of a client: one life of its process.",
        columns=(
            *WHOSE,
            text(
                "kind",
                "Client kind: `producer`, `consumer`, `group`, `copier`, `offsets`, `committer`, "
                "`txn`, `list_append`, `share_consumer`, `probe`, `visitor`, `final`, or one that "
                "no check uses.",
            ),
            ACKS,
            IDEMPOTENT,
            text("transactional_id", "Transactional id of the producer.", may_be_missing=True),
            GROUP.but(
                meaning="Consumer group; may be null if `assignments` or `commits` name it.",
                may_be_missing=True,
            ),
            text("instance", "`group.instance.id` of a static member.", may_be_missing=True),
            ISOLATION,
            text("library", "Name of the client library."),
            text("version", "Version of the client library."),
            text("boot_id", "Boot of the machine; times of different boots cannot be compared."),
            int32("pid", "Process id.", least=0),
            int64("begin_ns", "Start of the session.", may_be_missing=True),
            int64("end_ns", "End of the session; null after a kill.", may_be_missing=True),
        ),
    ),
    Table(
        name="sends",
        row="send",
        in_every_run=True,
        meaning="One send: the attempt of a client to write one record.",
        references=(
            Reference("clients", ("client",), "clients"),
            Reference(
                "txns",
                ("client", "session", "txn"),
                "transactions",
                is_optional=True,
                is_damage=True,
            ),
        ),
        calls=CallOrder(("client", "topic_id", "session", "partition_intended"), "op", "invoke_ns"),
        columns=(
            *_RECORDED_BY,
            int64(
                "op",
                "Number of the record among those of its client, from 0.",
                required=True,
                **COUNT,
            ),
            INVOKE_NS.but(import_needs=True),
            COMPLETE_NS.but(required=_OK, import_needs=True),
            OUTCOME.but(import_needs=True),
            ERROR,
            int32("attempts", "How often the batch was sent.", least=0),
            flag(
                "ambiguous",
                "Whether an attempt (of `ok`: one before the last) may have been written without "
                "an acknowledgement.",
                import_default=False,
            ),
            TOPIC_ID,
            TOPIC,
            int32("partition_intended", "Partition in the payload.", least=0),
            PARTITION.but(
                meaning="Partition that the producer chose.",
                required=_HAS_OFFSET,
                import_needs=True,
            ),
            OFFSET.but(
                meaning="Offset in the acknowledgement; null with acks=0, and for a duplicate "
                "that the broker reported without its offset.",
                import_needs=True,
            ),
            int32("node", "Broker that sent the last answer.", least=-1),
            PRODUCER_ID.but(meaning="Producer id of the last attempt."),
            PRODUCER_EPOCH.but(meaning="Producer epoch of the last attempt."),
            SEQUENCE.but(meaning="Sequence number of the last attempt."),
            KEY,
            VALUE_ID.but(required=True, import_needs=True),
            TIMESTAMP,
            TXN.but(may_be_missing=True),
            ACKS.but(uniform=True, may_be_missing=True),
            IDEMPOTENT.but(may_be_missing=True),
            flag(
                "tombstone",
                "Whether the record has no value, so that it deletes its key.",
                import_default=False,
                may_be_missing=True,
            ),
            text(
                "source",
                "`value_id` of the input record of a consume-transform-produce step.",
                may_be_missing=True,
            ),
        ),
    ),
    Table(
        name="reads",
        row="read",
        in_every_run=True,
        meaning="One record that a consumer received.",
        references=(Reference("clients", ("client",), "clients"),),
        calls=CallOrder(("client", "topic_id", "session", "partition", "pass"), "poll", "read_ns"),
        columns=(
            *_RECORDED_BY,
            int64(
                "pass",
                "Number of the pass; group members count their assignments.",
                required=True,
                **COUNT,
            ),
            int64("poll", "Number of the poll that returned the record.", required=True, **COUNT),
            int32(
                "position_in_poll",
                "Position among the records of the poll.",
                import_default=0,
                required=True,
                least=0,
            ),
            int64(
                "read_ns",
                "Time when the poll returned; the record may have been fetched before.",
                import_needs=True,
                required=True,
            ),
            GENERATION,
            TOPIC_ID,
            TOPIC,
            PARTITION.but(import_needs=True),
            OFFSET.but(least=0, required=True, import_needs=True),
            KEY,
            VALUE_ID.but(
                meaning="Identity in the payload; `foreign` for a payload of another run, `copy/` "
                "and the identity in topics of copies, null for other values.",
                import_needs=True,
            ),
            flag(
                "intact",
                "Whether the payload's checksum holds, and the timestamp is the one in the "
                "payload (unless the broker sets it).",
                import_default=True,
                required=True,
            ),
            LEADER_EPOCH.but(meaning="Leader epoch of the record's batch."),
            TIMESTAMP,
            TXN.but(may_be_missing=True),
        ),
    ),
    Table(
        name="passes",
        row="sweep",
        in_every_run=True,
        meaning="One pass: a stretch of a partition that a reader read in order, without a seek.",
        columns=(
            *(column.but(identifies=_COMPLETE) for column in WHOSE),
            int64("pass", "Number of the pass within the session.", identifies=_COMPLETE, **COUNT),
            TOPIC_ID.but(identifies=_COMPLETE),
            TOPIC,
            PARTITION.but(identifies=_COMPLETE),
            int64("from_offset", "Offset at which the pass began.", least=0, uniform=True),
            int64(
                "to_offset",
                "Offset behind the last one of the pass: for final readers the end that the "
                "leader reported before, for others where they stopped.",
                least=0,
                identifies=_COMPLETE,
            ),
            ISOLATION.but(uniform=True),
            int64("begin_ns", "Begin of the pass."),
            int64("end_ns", "End of the pass.", not_before=("begin_ns",)),
            flag("final", "Whether a final reader made the pass."),
            flag("complete", "Whether the pass reached `to_offset`."),
            int32(
                "leader",
                "Leader at both begin and end of a final pass; else null.",
                least=-2,
                may_be_missing=True,
            ),
        ),
    ),
    Table(
        name="polls",
        row="poll",
        meaning="One poll and one partition whose position it changed. Failed polls, and a final "
        "reader's requests for a log's begin or end, have one row without partition; empty polls "
        "have one row a second.",
        calls=CallOrder(("client", "topic_id", "session", "partition"), "poll", "invoke_ns"),
        columns=(
            *WHOSE,
            int64("poll", "Number of the poll within the session.", required=True, **COUNT),
            INVOKE_NS.but(required=False),
            COMPLETE_NS,
            OUTCOME,
            ERROR,
            *PLACE,
            int64(
                "position_before",
                "Position before the poll; of a poll with a wrong CRC, that of the batch.",
                least=-1,
            ),
            int64("position_after", "Position after the poll.", least=-1),
            text(
                "event",
                "`reset` (the position was lost, and the reader moved to a valid one), "
                "`rebalance` (first records after an assignment), `seek`, or null.",
                words=frozenset({"seek", "reset", "rebalance"}),
            ),
        ),
    ),
    Table(
        name="txns",
        row="transaction",
        meaning="One transaction of one client. A producer that could not be initialised has one "
        "that was aborted before its begin.",
        columns=(
            *(column.but(identifies=True) for column in (CLIENT, SESSION)),
            TXN.but(meaning="Number of the client's transaction, from 1.", identifies=True),
            text("transactional_id", "Transactional id of the producer."),
            PRODUCER_ID.but(may_be_missing=True),
            int32("epoch", "Producer epoch.", may_be_missing=True),
            int64("begin_ns", "Begin of the transaction.", identifies=True),
            int64("commit_invoke_ns", "Time right before the commit was requested; null if never."),
            int64("end_ns", "End of the transaction.", not_before=("begin_ns", "commit_invoke_ns")),
            text(
                "outcome",
                "`committed` or `aborted` (acknowledged), `fenced` (before a commit was "
                "requested), or `unknown` (everything else).",
                words=frozenset({"committed", "aborted", "unknown", "fenced"}),
                identifies=True,
            ),
            text("error", "Why a transaction was aborted; null if the client wanted to abort."),
            int64(
                "init_invoke_ns",
                "Time right before the producer's initialisation.",
                may_be_missing=True,
            ),
            int64("init_ns", "Time right after it; null if it failed.", may_be_missing=True),
            int64(
                "late_end_ns",
                "Time at which the lab delivered the end of an earlier transaction of the "
                "producer.",
                may_be_missing=True,
            ),
        ),
    ),
    Table(
        name="commits",
        row="commit",
        meaning="One committed position of one partition.",
        columns=(
            *_IN_GROUP,
            INVOKE_NS,
            COMPLETE_NS,
            OUTCOME,
            ERROR.but(
                meaning="Error; `2 attempts` if the library repeated an acknowledged commit."
            ),
            *NEEDED_PLACE,
            OFFSET.but(meaning="Committed position: the next offset to read.", required=True),
            int64(
                "processed_to",
                "Offset behind the last record that the member had processed; -1 for none since "
                "its assignment.",
                least=-1,
            ),
            TXN.but(may_be_missing=True),
            MEMBER_EPOCH,
        ),
    ),
    Table(
        name="commit_reads",
        row="OffsetFetch answer",
        meaning="One answer to OffsetFetch for one partition, after an assignment, or to a client "
        "outside the group.",
        columns=(
            *_IN_GROUP,
            INVOKE_NS,
            COMPLETE_NS,
            OUTCOME,
            ERROR,
            *NEEDED_PLACE,
            OFFSET.but(meaning="Committed position; null or -1 for none."),
            flag(
                "intact",
                "Whether metadata text and leader epoch are those of the commit.",
                may_be_missing=True,
            ),
        ),
    ),
    Table(
        name="deliveries",
        row="delivery",
        meaning="One record that a share group delivered to a member, and its acknowledgement.",
        calls=CallOrder(("client", "topic_id", "session", "partition"), "poll", "read_ns"),
        columns=(
            *WHOSE,
            GROUP.but(meaning="Share group.", required=True),
            int64("poll", "Number of the poll that returned the record.", required=True, **COUNT),
            int64(
                "requested_ns",
                "Time right before the first request that may have acquired the record.",
                required=True,
            ),
            int64(
                "read_ns",
                "Time when the poll returned.",
                required=True,
                not_before=("requested_ns",),
            ),
            *NEEDED_PLACE,
            OFFSET.but(least=0, required=True),
            KEY,
            VALUE_ID.but(meaning="Identity in the payload; null for a payload of nobody's."),
            flag("intact", "Whether the payload's checksum holds.", required=True),
            LEADER_EPOCH.but(meaning="Leader epoch of the record's batch."),
            TIMESTAMP,
            int32(
                "delivery_count",
                "How often the group has delivered the record, by the broker's count.",
                least=0,
            ),
            text(
                "acknowledgement",
                "`accept`, `release` or `reject`; null if the member acknowledged nothing.",
                words=frozenset({"accept", "release", "reject"}),
            ),
            INVOKE_NS.but(
                meaning="Time right before the acknowledgement.",
                required=_ACKNOWLEDGED,
                not_before=("read_ns",),
            ),
            COMPLETE_NS.but(meaning="Time right after its answer; null without one."),
            OUTCOME.but(
                meaning="Outcome of the acknowledgement: `ok`, `fail` (the lock was no longer the "
                "member's) or `info` (unknown).",
                required=_ACKNOWLEDGED,
            ),
            ERROR.but(meaning="Error of the acknowledgement."),
        ),
    ),
    Table(
        name="assignments",
        row="assignment",
        meaning="One change of one partition's assignment to a group member, as its client "
        "library reported it.",
        columns=(
            *WHOSE,
            GROUP.but(required=True),
            GENERATION,
            MEMBER.but(meaning="The group's id of the member; of `given`, that of the receiver."),
            int64("at_ns", "Time of the change.", required=True),
            text(
                "event",
                "`assigned`, `revoked`, `lost`; `given` by the group's leader; `kept` or "
                "`forgotten`, if the coordinator returned the member's own assignment or another "
                "one.",
                words=frozenset({"assigned", "revoked", "lost", "given", "kept", "forgotten"}),
                required=True,
            ),
            *NEEDED_PLACE,
            MEMBER_EPOCH,
        ),
    ),
    Table(
        name="offset_answers",
        row="ListOffsets answer",
        meaning="One answer about an offset of a log, or about a producer id.",
        columns=(
            int32("node", "Leader by the client's metadata.", least=-1),
            INVOKE_NS,
            COMPLETE_NS.but(meaning="Time right after the call.", required=True),
            int32("api_version", "Version of the request.", least=0),
            text(
                "query",
                "`earliest`, `latest` (high watermark), `stable` (last stable offset), `time:MS`, "
                "`max` (KIP-734), `epoch:E in C` (OffsetForLeaderEpoch), `before:START` (a fetch "
                "right before the log's start) or `producer` (InitProducerId).",
                required=True,
            ),
            *NEEDED_PLACE,
            OFFSET.but(meaning="Offset, or producer id, in the answer.", most=COUNT_END - 1),
            LEADER_EPOCH.but(meaning="Leader epoch in the answer."),
            TIMESTAMP.but(meaning="Timestamp in the answer."),
            ERROR,
        ),
    ),
    Table(
        name="accesses",
        row="access attempt",
        meaning="One attempt of a user at one broker, or one answer to an examiner's question.",
        columns=(
            CLIENT.but(required=True),
            SESSION,
            int32("node", "Broker that answered; -1 for none.", least=-1, required=True),
            text("subject", "User and right, or the question.", required=True),
            INVOKE_NS,
            COMPLETE_NS.but(required=_ANSWERED),
            text(
                "outcome",
                "`ok`, `denied` or `info`; `shows grant` or `shows none` for DescribeAcls; "
                "`right` or `wrong` for a question.",
                words=frozenset(
                    {"ok", "denied", "info", "shows grant", "shows none", "right", "wrong"}
                ),
                required=True,
            ),
            ERROR.but(meaning="Error; of a wrong answer, this and the right one."),
        ),
    ),
    Table(
        name="outputs",
        row="output",
        meaning="One row that an application wrote outside of the run's own topics: a committed "
        "record of a result topic, a line of a file, a row of a database.",
        columns=(
            text("application", "Name of the application."),
            text("sink", "What it was written to.", required=True),
            PARTITION.but(meaning="Partition of a result topic; null elsewhere."),
            int64("position", "Offset, or number of the row in the sink.", required=True, **COUNT),
            text("key", "Key of the row; null without a key."),
            text("value", "Value of the row as text; null for a deletion."),
            VALUE_ID.but(meaning="Identity of the input record that the row carries, if any."),
            TIMESTAMP,
        ),
    ),
)
