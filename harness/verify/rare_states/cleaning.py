"""Rare states of logs whose records compaction, retention or an administrator removed."""

from __future__ import annotations

from urteil.harness.verify.rare_states.base import RareState

STATES = (
    RareState(
        name="cleaned_over_epoch_start",
        about="A cleaner removed the records on both sides of the offset at which a leader epoch "
        "begins.",
        reads=("replicas", "epoch_starts"),
        query="""SELECT DISTINCT gaps.p, gaps.broker, epoch_starts.epoch FROM gaps JOIN epoch_starts
            ON epoch_starts.p = gaps.p AND epoch_starts.broker = gaps.broker
              AND epoch_starts.start > gaps.before_offset + 1
              AND epoch_starts.start < gaps.after_offset""",
    ),
    RareState(
        name="epoch_cleaned_away",
        about="A replica knows a leader epoch of which it holds no record any more.",
        reads=("replicas", "epoch_starts"),
        query="""SELECT p, broker, epoch FROM (
              SELECT *, LEAD(start, 1, log_end) OVER (PARTITION BY p, broker ORDER BY epoch)
                AS next_start
              FROM epoch_starts) known
            WHERE start < next_start AND start >= log_start AND NOT EXISTS (
              SELECT 1 FROM replicas JOIN places USING (topic_id, partition)
              WHERE places.p = known.p AND replicas.broker = known.broker
                AND replicas.leader_epoch = known.epoch)""",
    ),
    RareState(
        name="leader_changed_in_cleaned_log",
        about="A partition got a new leader whose log a cleaner had thinned out.",
        reads=("replicas", "versions"),
        query="SELECT DISTINCT p, epoch FROM elected SEMI JOIN gaps USING (p)",
    ),
    RareState(
        name="replicas_cleaned_differently",
        about="Replicas of one partition with the same begin and end held different numbers of "
        "records.",
        reads=("replicas", "logs"),
        query="""SELECT topic_id, partition FROM (
              SELECT logs.topic_id, logs.partition, logs.broker, logs.log_start, logs.log_end,
                COUNT(replicas.offset) AS records
              FROM logs LEFT JOIN replicas ON replicas.topic_id = logs.topic_id
                AND replicas.partition = logs.partition AND replicas.broker = logs.broker
              GROUP BY ALL)
            GROUP BY topic_id, partition, log_start, log_end HAVING COUNT(DISTINCT records) > 1""",
    ),
    RareState(
        name="tombstone_removed",
        about="A cleaner removed an acknowledged tombstone from every replica.",
        reads=("replicas", "sends"),
        query="""SELECT value_id FROM sends ANTI JOIN replicas USING (value_id)
            WHERE sends.tombstone AND sends.outcome = 'ok'""",
    ),
    RareState(
        name="marker_without_records",
        about="A replica held the marker of a transaction and none of its records: they had been "
        "removed, or were never written.",
        reads=("replicas",),
        query="""SELECT DISTINCT topic_id, partition, marker_offset FROM markers
            WHERE follows_record IS NOT TRUE""",
    ),
    RareState(
        name="log_starts_differ",
        about="Replicas of one partition began at different offsets.",
        reads=("logs",),
        query="""SELECT topic_id, partition FROM logs GROUP BY ALL
            HAVING COUNT(DISTINCT log_start) > 1""",
    ),
    RareState(
        name="segments_differ",
        about="Replicas of one partition with the same begin and end were cut into segments at "
        "different offsets.",
        reads=("replicas", "logs"),
        query="""SELECT topic_id, partition FROM (
              SELECT logs.topic_id, logs.partition, logs.broker, logs.log_start, logs.log_end,
                list(DISTINCT replicas.segment_base ORDER BY replicas.segment_base) AS bases
              FROM logs JOIN replicas ON replicas.topic_id = logs.topic_id
                AND replicas.partition = logs.partition AND replicas.broker = logs.broker
              GROUP BY ALL)
            GROUP BY topic_id, partition, log_start, log_end HAVING COUNT(DISTINCT bases) > 1""",
    ),
    RareState(
        name="log_emptied",
        about="A log lost all records that it had.",
        reads=("logs",),
        query="SELECT * FROM logs WHERE log_end > 0 AND log_start = log_end",
    ),
    RareState(
        name="epoch_removed",
        about="A log lost all records of a whole leader epoch at its begin.",
        reads=("epoch_starts", "versions"),
        query="""SELECT DISTINCT known.p, known.broker FROM (
              SELECT p, broker, MIN(epoch) AS epoch FROM epoch_starts WHERE log_start > 0
              GROUP BY ALL) known
            JOIN versions ON versions.p = known.p AND versions.leader >= 0
              AND versions.epoch < known.epoch""",
    ),
    RareState(
        name="reader_fell_out_of_log",
        about="The records at a reader's position were removed before it received them.",
        reads=("polls",),
        query="""SELECT * FROM polls
            WHERE event = 'reset' AND position_after > position_before""",
    ),
    RareState(
        name="records_deleted_at_election",
        about="An administrator deleted records of a topic within a second of an election in it.",
        reads=("admin_ops", "versions"),
        query="""SELECT DISTINCT admin_ops.invoke_ns FROM admin_ops JOIN elected
            ON elected.topic = admin_ops.subject AND elected.at_ns
              BETWEEN admin_ops.invoke_ns - seconds(1) AND admin_ops.complete_ns + seconds(1)
            WHERE admin_ops.act = 'delete records'""",
    ),
)
