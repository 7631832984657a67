"""The position of a consumer decreases only when it was moved, as at the begin of a new pass.

A consumer receives no OFFSET_OUT_OF_RANGE at a position where the log continued all the time: the
records that it had read before were committed, and every later leader has them. The error would
reset it to another position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place, union
from urteil.harness.verify.guarantees.delivery.poll_skip import NO_EVENT, steps
from urteil.harness.verify.guarantees.losses import LOSSES
from urteil.harness.verify.reference import SmallHistory, Violation

_RESETS = """
SELECT last_reads.p, last_reads.off, last_reads.at_ns, last_reads.until_ns, last_reads.client,
  last_reads.session, last_reads.poll, last_reads.value_id
FROM (SELECT partitions.p, reads.offset AS off, reads.read_ns AS at_ns,
        failed_polls.complete_ns AS until_ns, resets.client,
        resets.session, failed_polls.poll, reads.value_id, resets.topic_id, resets.partition,
        ROW_NUMBER() OVER (
          PARTITION BY resets.client, resets.session, partitions.p, resets.poll
          ORDER BY reads.poll DESC,
          reads.position_in_poll DESC, failed_polls.poll) AS n
      FROM polls resets JOIN partitions ON partitions.topic_id = resets.topic_id
        AND partitions.partition = resets.partition
      JOIN polls failed_polls ON failed_polls.client = resets.client
        AND failed_polls.session = resets.session AND failed_polls.poll < resets.poll
        AND failed_polls.outcome = 'fail' AND failed_polls.error IN ('OffsetOutOfRangeError',
            'LogTruncationError')
      JOIN reads ON reads.client = resets.client AND reads.session = resets.session
        AND reads.topic_id = resets.topic_id AND reads.partition = resets.partition
        AND reads.poll < failed_polls.poll
      WHERE resets.event = 'reset') last_reads
JOIN partitions ON partitions.p = last_reads.p
WHERE last_reads.n = 1 AND last_reads.off + 1 >= partitions.common_start AND last_reads.off
  + 1 <= partitions.log_end
  AND NOT EXISTS (SELECT 1 FROM assignments WHERE assignments.client = last_reads.client
                    AND assignments.session = last_reads.session
                  AND assignments.topic_id = last_reads.topic_id
                  AND assignments.partition = last_reads.partition
                  AND assignments.at_ns >= last_reads.at_ns
                  AND assignments.at_ns <= last_reads.until_ns)
"""
"""The last record of a partition that a client received before an out-of-range error at its
position. The offsets after it are in the final log, whose start is unchanged since."""

_OF_READS = f"""
SELECT 'reads' AS sub_kind, gaps.p, gaps.off, gaps.prev_read_ns AS at_ns, gaps.read_ns AS until_ns,
  gaps.client, gaps.session, gaps.poll, gaps.value_id, gaps.prev_off, partitions.unclean_on,
  partitions.unclean_floor, partitions.lost_floor, partitions.losses_ns
FROM gaps JOIN partitions ON partitions.p = gaps.p WHERE gaps.off <= gaps.prev_off AND {NO_EVENT}"""
"""Reads at or below the previous offset of their consumer."""

_OF_POSITIONS = """
SELECT 'position', successive_polls.p, successive_polls.position_before, successive_polls.prev_ns,
  successive_polls.invoke_ns, successive_polls.client, successive_polls.session,
  successive_polls.poll, CAST(NULL AS STRING), successive_polls.prev_after,
  successive_polls.unclean_on, successive_polls.unclean_floor, successive_polls.lost_floor,
  successive_polls.losses_ns
FROM (SELECT polls.client, polls.session, polls.poll, polls.position_before, polls.invoke_ns,
        polls.complete_ns,
        polls.event, partitions.p, partitions.unclean_on, partitions.unclean_floor,
        partitions.lost_floor, partitions.losses_ns, LAG(polls.position_after) OVER w AS prev_after,
        LAG(polls.event) OVER w AS prev_event, LAG(polls.complete_ns) OVER w AS prev_ns,
        LAG(polls.poll) OVER w AS prev_poll
      FROM polls JOIN partitions ON polls.topic_id = partitions.topic_id
        AND polls.partition = partitions.partition
      WINDOW w AS (PARTITION BY polls.client, polls.session, partitions.p
                   ORDER BY polls.poll)) successive_polls
WHERE successive_polls.position_before < successive_polls.prev_after
  AND successive_polls.event IS NULL AND successive_polls.prev_event IS NULL
  AND successive_polls.prev_poll < successive_polls.poll
  AND NOT EXISTS (SELECT 1 FROM passes JOIN partitions ON partitions.topic_id = passes.topic_id
                    AND partitions.partition = passes.partition
                  WHERE passes.client = successive_polls.client
                    AND passes.session = successive_polls.session
                    AND partitions.p = successive_polls.p
                    AND passes.from_offset = successive_polls.position_before
                    AND passes.begin_ns >= successive_polls.prev_ns
                    AND passes.begin_ns <= successive_polls.invoke_ns)
  AND NOT EXISTS (SELECT 1 FROM assignments JOIN partitions
                    ON partitions.topic_id = assignments.topic_id
                    AND partitions.partition = assignments.partition
                  WHERE assignments.client = successive_polls.client
                    AND assignments.session = successive_polls.session
                    AND partitions.p = successive_polls.p
                    AND assignments.at_ns >= successive_polls.prev_ns
                    AND assignments.at_ns <= successive_polls.complete_ns)
  AND NOT EXISTS (SELECT 1 FROM polls WHERE polls.client = successive_polls.client
                    AND polls.session = successive_polls.session
                  AND polls.event IS NOT NULL
                  AND (polls.topic_id IS NULL OR polls.partition IS NULL)
                  AND polls.poll >= successive_polls.prev_poll
                    AND polls.poll <= successive_polls.poll)"""
"""Polls that begin below the end of the previous poll, without an event or a new pass between."""

_OUT_OF_RANGE = f"""
SELECT 'out of range', moved_readers.p, moved_readers.off, moved_readers.at_ns,
  moved_readers.until_ns, moved_readers.client, moved_readers.session, moved_readers.poll,
  moved_readers.value_id, CAST(NULL AS BIGINT), partitions.unclean_on, partitions.unclean_floor,
  partitions.lost_floor, partitions.losses_ns
FROM ({_RESETS}) moved_readers JOIN partitions ON partitions.p = moved_readers.p"""
"""Consumers that an out-of-range error within the log sent elsewhere."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "out of range":
        return (
            f"{row['client']} received {place(row)}, and then an out-of-range error at its "
            "position, although every log continues there."
        )
    return (
        f"{row['client']} was past offset {row['prev_off']} of {row['topic']}-"
        f"{row['partition']} and then received {place(row)}, without seek, reset or rebalance."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A reader that was not moved never receives an offset at or below its last one.

    Left out: positions, and answers that a position is out of range.
    """
    for partition in history.partitions:
        for read, before in steps(partition):
            if read.offset <= before:
                yield partition.violation("reads", read.offset, read.value_id)


GUARANTEE = Guarantee(
    name="nonmonotonic_poll",
    rank=160,
    about="the position of a consumer decreased without seek, reset or rebalance",
    promise="The position of the consumer advances automatically every time it receives messages "
    "in a call to poll.",
    source="KafkaConsumer, Offsets and Consumer Position; Kafka documentation, 4.5 The Consumer",
    sub_kinds={
        "reads": "a consumer got an offset at or below its last one",
        "position": "its position fell",
        "out of range": (
            "a consumer of kafka-python got the answer that its position does not exist and began "
            "elsewhere, though the final log continues there, and its start is unchanged"
        ),
    },
    not_counted=(
        "Moves after a seek, a reset or a rebalance, or in another generation.",
        "A position at which another pass of that client began meanwhile.",
        "`out of range` where an administrator deleted records, and for what an unclean election "
        "or a disk destroyed.",
    ),
    opportunities="SELECT COUNT(*) AS n FROM reads",
    violations=union(_OF_READS, _OF_POSITIONS, _OUT_OF_RANGE),
    excuses=LOSSES,
    explain=_explain,
    tie="finding.client, finding.poll",
    excused_by_times=True,
    needs=("reads",),
    reads=("gaps", "partitions", "reads", "passes", "polls", "assignments"),
    rests_on=("reads", "polls", "clients", "assignments", "logs"),
    reference=_reference,
    reference_covers=("reads",),
)
