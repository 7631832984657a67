"""The tables of evidence about the cluster and the lab: acts, faults, metadata, disks, metrics."""

from __future__ import annotations

from urteil.harness.evidence.columns import (
    BROKER,
    BROKERS,
    COMPLETE_NS,
    EFFECTS,
    EPOCHS,
    HARM,
    INVOKE_NS,
    KEY,
    LEADER_EPOCH,
    NAMES,
    NEEDED_PLACE,
    OBJECT,
    OFFSET,
    OUTCOME,
    PARTITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    REPLICAS,
    SEQUENCE,
    TIMESTAMP,
    TOPIC,
    TOPIC_ID,
    VALUE_ID,
    Row,
    Table,
    When,
    flag,
    float64,
    int32,
    int64,
    text,
)
from urteil.harness.evidence.limits import FOREVER_NS

_OF_RIGHT = When("when a right changed", sql="x.act IN ('grant', 'revoke')")
_EVERY_ROW = When("in any row", sql="TRUE")
_STORED = When("in topics of the run", sql="TRUE")
_INTACT = When("in intact records", sql="COALESCE(x.intact, TRUE)")
_SEQUENCED = When("when there is a sequence", sql="x.sequence >= 0")
_PRODUCED = When(
    "in records of a producer with an id",
    sql="x.producer_id >= 0 AND x.control IS NULL AND x.intact",
)


def _is_partition_state(row: Row) -> bool:
    steps = (row.get("path") or "").split("/")[-3:]
    named = len(steps) == 3 and steps[0] == "partitions" and steps[2] == "state"
    is_partition = row.get("partition") is not None or (named and steps[1].isdecimal())
    return is_partition and row.get("version") != -1


_OF_PARTITION = When("in states of a partition", holds=_is_partition_state)

TABLES = (
    Table(
        name="admin_ops",
        row="act",
        meaning="One administrative act, from before its request until its effect was seen.",
        columns=(
            INVOKE_NS.but(required=_OF_RIGHT),
            COMPLETE_NS.but(meaning="Time when its effect was seen.", not_before=()),
            OUTCOME.but(meaning="`ok`, `fail`, or `info` (rejected, or not ended in time)."),
            text(
                "act",
                "What was done, such as `create`, `reassign` or `kill client`.",
                required=_EVERY_ROW,
            ),
            text(
                "subject", "Topic, partition, group, client, broker or right.", required=_OF_RIGHT
            ),
            text("before", "The state before, as an object.", form=OBJECT),
            text("after", "The state after, or why the act failed, as an object.", form=OBJECT),
        ),
    ),
    Table(
        name="faults",
        row="fault",
        meaning="One fault that the lab injected.",
        columns=(
            text("fault", "Name of the fault.", required=True),
            text("targets", "Nodes or links that it was aimed at: a name, or a list.", form=NAMES),
            int64("begin_ns", "Begin of the fault.", required=True),
            int64("end_ns", "Begin of healing."),
            int64("healed_ns", "End of healing; null if it never ended."),
            text("proof", "What shows that the fault acted."),
            flag("acted", "Whether it acted.", may_be_missing=True),
            text(
                "harm",
                "Records that it destroyed on disks: an object with `at_ns` and, by broker and "
                "partition, the first offset and the one behind the last (null: the log's end).",
                form=HARM,
                may_be_missing=True,
            ),
            text(
                "effects",
                "What it did, such as `kills_nodes` or `cuts_links` (`chaos/effects.py`): a list. "
                "Null in older runs, where the name of the fault implies it.",
                form=EFFECTS,
                may_be_missing=True,
            ),
        ),
    ),
    Table(
        name="link_events",
        row="request or answer",
        meaning="One request or answer on which a fault of the protocol acted, by its proxy.",
        columns=(
            int64("at_ns", "When it reached the proxy.", required=True),
            int64(
                "bound_ns",
                "How far `at_ns` may be from the true time; 0 for a proxy with the lab's clock.",
                is_duration=True,
                least=0,
                may_be_missing=True,
            ),
            text("fault", "Name of the fault.", required=True),
            text("link", "The link, such as `client->b1`.", required=True),
            text("direction", "`request` or `answer`.", required=True),
            text("api", "Name of the API.", required=True),
            int32("version", "Version of the API.", required=True),
            int32("correlation_id", "Correlation id of the request.", required=True),
            text("client_id", "Client id of the request."),
            text("act", "What was done, such as `drop` or `hold`.", required=True),
            int32("occurrence", "Its number among the frames that the fault selects."),
            text("detail", "The error of an act that failed."),
            text(
                "message",
                "The message as JSON, of the fault `record`.",
                may_be_missing=True,
            ),
        ),
    ),
    Table(
        name="states",
        row="state",
        in_every_run=True,
        meaning="One version of a znode, or of the same fact in KRaft's metadata log. A deletion "
        "has version -1 and no values.",
        columns=(
            int64(
                "zxid",
                "Position in the metadata log; plus 2^48 for the second cluster of a run.",
                identifies=True,
            ),
            int64(
                "at_ns",
                "Wall clock of the metadata plane, shifted to CLOCK_MONOTONIC.",
                identifies=True,
            ),
            int64(
                "wall_ms",
                "Wall clock of the metadata plane.",
                most=FOREVER_NS // 1_000_000,
                may_be_missing=True,
            ),
            text("path", "Path of the znode; in KRaft, that of the same fact."),
            int32(
                "version", "Version of the znode; -1 for its deletion.", least=-1, identifies=True
            ),
            TOPIC_ID.but(identifies=_OF_PARTITION),
            TOPIC,
            PARTITION.but(identifies=_OF_PARTITION),
            int32("leader", "Leader; -1 for none, -2 for a deleted topic.", least=-2),
            LEADER_EPOCH.but(identifies=_OF_PARTITION),
            int32("controller", "Broker that is the controller.", least=-1),
            int32("controller_epoch", "Controller epoch.", least=-1),
            text("isr", "In-sync replicas.", form=BROKERS, identifies=_OF_PARTITION),
            text(
                "elr",
                "Eligible leader replicas (KIP-966), which may lead when no replica is in sync.",
                form=BROKERS,
                may_be_missing=True,
            ),
            text("replicas", "Assigned replicas; of a topic, by partition.", form=REPLICAS),
            text(
                "settings",
                "Settings of a topic, or quotas of a client id, as an object.",
                form=OBJECT,
                may_be_missing=True,
            ),
        ),
    ),
    Table(
        name="metadata_logs",
        row="metadata batch",
        meaning="One batch of a controller's copy of KRaft's metadata log after the run, or as the "
        "lab saw it committed during the run. Only of the first cluster.",
        columns=(
            int32(
                "broker",
                "Controller that holds the copy; -1 for a batch seen committed.",
                least=-1,
                required=True,
                identifies=True,
            ),
            int64("base", "Offset of its first record.", least=0, required=True, identifies=True),
            int64("last", "Offset of its last record.", least=0),
            int64(
                "start",
                "Offset at which the copy begins: a snapshot stands for what is before.",
                least=0,
                may_be_missing=True,
            ),
            int32("epoch", "Epoch of the quorum.", least=0, required=True, identifies=True),
            int32("leader", "Leader of the epoch, of the batch that begins it.", least=0),
            int32(
                "changed_voters",
                "Of a record of a dynamic quorum's voters: how many it adds and removes.",
                least=0,
                may_be_missing=True,
            ),
            flag(
                "is_voter",
                "Whether the controller is a voter of the dynamic quorum after the run; null of a "
                "static one.",
                may_be_missing=True,
            ),
            int64("crc", "Checksum of its bytes.", least=0, most=(1 << 32) - 1, required=True),
            int64("size", "Its bytes.", least=0, required=True),
            int64("at_ns", "Wall clock of its writer, shifted to CLOCK_MONOTONIC.", required=True),
        ),
    ),
    Table(
        name="votes",
        row="vote",
        meaning="A version of a controller's file `quorum-state` that the lab saw, or a vote in "
        "the batch of KRaft's metadata log that begins an epoch. Only of the first cluster.",
        columns=(
            int32("broker", "Controller that voted.", least=0, required=True, identifies=True),
            int32("epoch", "Its epoch of the quorum.", least=0, required=True, identifies=True),
            int32("candidate", "Controller that it voted for; null for none.", least=0),
            int32("leader", "Leader that it knew, or whose batch lists the vote.", least=0),
            int32("voters", "Voters of the epoch, by the batch; null of a file.", least=0),
            text(
                "directory",
                "Id of the voter's log directory in a dynamic quorum, by which a controller that "
                "lost its disk is another voter.",
                may_be_missing=True,
            ),
            int64(
                "position",
                "Number of the version among those of all files, or offset of the batch.",
                least=0,
                required=True,
                identifies=True,
            ),
            int64(
                "at_ns",
                "When the version was seen, or the batch's wall clock, shifted to CLOCK_MONOTONIC.",
                required=True,
            ),
        ),
    ),
    Table(
        name="samples",
        row="sample",
        is_written_live=True,
        meaning="One metric of one source at one moment.",
        columns=(
            int64("at_ns", "Time of the sample."),
            text("source", "Where it was measured: `lab`, or a node as `b1`."),
            text("metric", "Name of the metric."),
            text("labels", "Labels of the metric, as an object.", form=OBJECT),
            float64("value", "Value of the metric."),
        ),
    ),
    Table(
        name="logs",
        row="log",
        in_every_run=True,
        meaning="One replica's log on disk after the run.",
        columns=(
            BROKER.but(identifies=True),
            TOPIC_ID.but(identifies=True),
            TOPIC,
            PARTITION.but(identifies=True),
            int64("log_start", "Log start offset.", least=0, uniform=True),
            int64("log_end", "Offset behind the last record.", least=0, identifies=True),
            int64("high_watermark", "High watermark in the checkpoint.", least=0),
            int64("recovery_point", "Recovery point in the checkpoint.", least=0),
            text("epochs", "Leader epochs and their start offsets, as an object.", form=EPOCHS),
            int64("active_base", "Base offset of the active segment.", may_be_missing=True),
        ),
    ),
    Table(
        name="indexes",
        row="index entry",
        meaning="One entry of a segment's index, with the batch that it leads to.",
        columns=(
            BROKER.but(required=True),
            *NEEDED_PLACE,
            int64("segment_base", "Base offset of the segment.", least=0, required=True),
            text(
                "kind",
                "`offset`, `time` or `txn` (aborted transactions).",
                required=True,
                words=frozenset({"offset", "time", "txn"}),
            ),
            int32("entry", "Number of the entry in its index.", required=True),
            OFFSET.but(meaning="Offset in the entry.", required=True),
            int64("position", "Position in the segment; null in other indexes than `offset`."),
            TIMESTAMP.but(meaning="Timestamp in the entry."),
            PRODUCER_ID.but(meaning="Producer id in the entry."),
            text("there", "`batch`, or for `txn` the marker's kind; null if there is none."),
            int64("there_base", "Base offset of the batch."),
            int64("there_last", "Last offset of the batch."),
            int64("there_timestamp_ms", "Highest timestamp of the batch.", is_free=True),
            int64(
                "before_timestamp_ms",
                "Highest timestamp in the segment before the batch.",
                is_free=True,
            ),
        ),
    ),
    Table(
        name="replicas",
        row="stored record",
        in_every_run=True,
        meaning="One record or marker on a broker's disk after the run. A batch that cannot be "
        "parsed has one row, with its base offset and `intact` false.",
        columns=(
            BROKER.but(required=True),
            *NEEDED_PLACE,
            int64("segment_base", "Base offset of the segment.", least=0),
            int64("batch_base", "Base offset of the batch.", least=0, uniform=True),
            int32("batch_bytes", "Size of the batch.", least=0, uniform=True),
            int64("batch_crc", "CRC of the batch.", least=0, required=_STORED),
            OFFSET.but(least=0, required=_STORED),
            LEADER_EPOCH.but(meaning="Leader epoch of the batch.", required=_STORED),
            PRODUCER_ID.but(required=_SEQUENCED),
            PRODUCER_EPOCH.but(required=_SEQUENCED),
            SEQUENCE.but(required=_PRODUCED),
            KEY,
            VALUE_ID.but(
                meaning="Identity in the payload, as in `reads`; null for markers and other values."
            ),
            flag(
                "intact",
                "Whether the batch's CRC and the payload's checksum hold, as in `reads`; null in "
                "topics that are not the run's.",
            ),
            text(
                "control",
                "`commit` or `abort` for a marker, else null.",
                words=frozenset({"commit", "abort"}),
            ),
            flag("transactional", "Whether the batch is transactional."),
            TIMESTAMP.but(required=_INTACT),
        ),
    ),
    Table(
        name="manifest",
        row="source",
        in_every_run=True,
        meaning="One part file, journal, log or table of the run, with what it must contain.",
        columns=(
            text("file", "Path within the run."),
            text(
                "kind",
                "`part`, `journal`, `replica_log`, `zookeeper_log`, `metadata_log`, `outputs` or "
                "`table`.",
                may_be_missing=True,
            ),
            int64("rows", "Rows, entries, records or transactions in it."),
            int64("first_sequence", "First `op` of a journal, first zxid of a log."),
            int64("last_sequence", "Last `op` of a journal, last zxid of a log."),
            flag("ended_properly", "Whether it is neither truncated nor damaged."),
        ),
    ),
)
