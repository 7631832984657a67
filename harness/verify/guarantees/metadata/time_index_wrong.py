"""A lookup by timestamp finds the first record that is not older, and the largest timestamp a
record that has it.

Each response carries that record's own timestamp and leader epoch. With LogAppendTime,
timestamps never decrease.

ListOffsets responses are compared with the final leader's log. Offsets below its start are left
out, and so are records cleaned since. Replicas clean independently, so in a compacted topic a
leader owes only the records that all replicas still hold.

`none` requires a record acknowledged before the request, a response from the leader, and a log
from which neither an administrator nor retention deleted records: Apache Kafka looks into one
segment below the log start, of which no record is left, and into no other. The largest timestamp
is compared with the records before the response, and with records acknowledged before the
request that still exist: none may be newer. An empty response is no violation, since the newest
record may not be committed yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, place
from urteil.harness.verify.guarantees.losses import LOSSES

_ASKED = """
FROM answers a JOIN parts q ON q.p = a.p
WHERE a.kind = 'time' AND a.asked_ms IS NOT NULL AND a.error IS NULL AND q.has_log = 1
"""

_FOUND = f"""
SELECT m.p, m.node, m.at_ns, m.until_ns, m.asked_ms, m.told,
  MIN(m.off) OVER (PARTITION BY m.p ORDER BY m.asked_ms DESC, m.kind
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS first_off, m.kind
FROM (SELECT a.p, a.node, a.invoke_ns AS at_ns, a.complete_ns AS until_ns, a.asked_ms,
        COALESCE(a.offset, -1) AS told, CAST(NULL AS BIGINT) AS off, 1 AS kind {_ASKED}
      UNION ALL
      SELECT q.p, NULL, NULL, NULL, MAX(r.timestamp_ms), NULL, MIN(r.offset), 0
      FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
      JOIN (SELECT DISTINCT a.p {_ASKED}) w ON w.p = q.p
      LEFT JOIN (SELECT DISTINCT a.p, a.asked_ms DIV 1000 AS s {_ASKED}) k
        ON k.p = q.p AND k.s = r.timestamp_ms DIV 1000
      WHERE r.broker = q.final_leader AND r.timestamp_ms IS NOT NULL
        AND r.offset >= q.log_start
      GROUP BY q.p, r.timestamp_ms DIV 1000, CASE WHEN k.p IS NOT NULL THEN r.timestamp_ms END) m
"""
"""Answers, each with the first offset of its time or later. Of the records, one for each time in
the seconds that somebody asked for, and one for each other second."""

_LED = """
SELECT a.p, a.node, a.invoke_ns, MAX(CASE WHEN s.leader = a.node THEN 1 ELSE 0 END) AS led
FROM answers a JOIN spans s
  ON s.p = a.p AND s.begin_ns <= a.complete_ns AND s.end_ns > a.invoke_ns
WHERE a.kind IN ('time', 'max') GROUP BY a.p, a.node, a.invoke_ns
"""
"""Whether the responding broker led then, by ZooKeeper: another may lack acknowledged records."""

_FOUND_ONES = """
FROM answers a JOIN parts q ON q.p = a.p
JOIN replicas r ON r.topic_id = q.topic_id AND r.partition = q.partition
  AND r.broker = q.final_leader AND r.offset = a.offset
WHERE a.kind IN ('time', 'max') AND a.found_ms IS NOT NULL AND a.error IS NULL AND q.has_log = 1
  AND a.offset >= q.log_start
"""
"""The records that were found, in the final leader's log."""

_OTHER = f"""
SELECT CASE WHEN a.leader_epoch >= 0 AND a.leader_epoch <> r.leader_epoch THEN 'other epoch'
    ELSE 'other time' END AS sub_kind,
  a.p, a.offset AS off, a.invoke_ns AS at_ns, a.complete_ns AS until_ns, r.value_id, a.node,
  a.found_ms AS asked_ms, r.timestamp_ms AS told,
  CAST(a.leader_epoch AS BIGINT) AS first_off, r.leader_epoch, q.unclean_on, q.unclean_floor,
  q.lost_floor, q.spoilt_ns
{_FOUND_ONES} AND ((a.leader_epoch >= 0 AND a.leader_epoch <> r.leader_epoch)
  OR (q.append_time = 0 AND a.found_ms <> r.timestamp_ms))
"""

_NEWEST = (
    "FROM answers a JOIN parts q ON q.p = a.p WHERE a.kind = 'max' AND a.offset >= 0 "
    "AND a.found_ms IS NOT NULL AND a.error IS NULL AND q.has_log = 1 AND q.append_time = 0"
)

_NEWER = f"""
SELECT m.p, m.node, m.at_ns, m.until_ns, m.off, m.found_ms, m.kind,
  MAX(m.ms) OVER (PARTITION BY m.p ORDER BY {{order}}, m.kind
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS newest_ms
FROM (SELECT a.p, a.node, a.invoke_ns AS at_ns, a.complete_ns AS until_ns, a.offset AS off,
        a.found_ms, CAST(NULL AS BIGINT) AS ms, 0 AS kind {_NEWEST}
      UNION ALL {{records}}) m
"""
_BEFORE = _NEWER.format(
    order="m.off",
    records=f"""
      SELECT q.p, NULL, NULL, NULL, r.offset, NULL, r.timestamp_ms, 1
      FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
      JOIN (SELECT DISTINCT a.p {_NEWEST}) w ON w.p = q.p
      WHERE r.broker = q.final_leader AND r.timestamp_ms IS NOT NULL""",
)
"""Responses with the largest timestamp of the records before the returned offset."""
_KNOWN = _NEWER.format(
    order="m.at_ns",
    records=f"""
      SELECT v.sent_p, NULL, v.complete_ns, NULL, v.ack_off, NULL, v.timestamp_ms, 1
      FROM vals v JOIN parts q ON q.p = v.sent_p JOIN (SELECT DISTINCT a.p {_NEWEST}) w
        ON w.p = v.sent_p
      WHERE v.outcome = 'ok' AND v.acks = -1 AND v.at_ack = 1 AND v.ack_off >= q.max_start
        AND v.timestamp_ms IS NOT NULL AND q.compacted = 0""",
)
"""Answers with the largest time that was acknowledged before the question, and was not lost."""


def _not_newest(found: str) -> str:
    return f"""
SELECT 'not the newest', f.p, f.off, f.at_ns, f.until_ns, CAST(NULL AS STRING), f.node,
  f.newest_ms, f.found_ms, CAST(NULL AS BIGINT), CAST(NULL AS INT), q.unclean_on, q.unclean_floor,
  q.lost_floor, q.spoilt_ns
FROM ({found}) f JOIN parts q ON q.p = f.p LEFT JOIN ({_LED}) d
  ON d.p = f.p AND d.node = f.node AND d.invoke_ns = f.at_ns
WHERE f.kind = 0 AND f.newest_ms > f.found_ms AND COALESCE(d.led, 1) = 1"""


_BACK = """
FROM (SELECT q.p, r.offset AS off, r.value_id, r.leader_epoch, r.timestamp_ms,
        LAG(r.timestamp_ms) OVER (PARTITION BY q.p, r.leader_epoch ORDER BY r.offset) AS prev_ms
      FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
      WHERE r.broker = q.final_leader AND q.append_time = 1 AND q.clock_moved = 0
        AND r.timestamp_ms IS NOT NULL) b
"""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "time went back":
        return (
            f"The append time at {place(row)} is {row['asked_ms']}, below {row['first_off']} right "
            f"before it in leader epoch {row['leader_epoch']}."
        )
    if row["sub_kind"] == "not the newest":
        return (
            f"For the largest timestamp in {row['topic']}-{row['partition']} broker "
            f"{row['node']} returned offset {row['off']} of {row['told']}; there was a record "
            f"of {row['asked_ms']}."
        )
    if row["sub_kind"] in ("other epoch", "other time"):
        return (
            f"Broker {row['node']} found {place(row)} by its timestamp, and returned "
            f"{row['asked_ms']} and leader epoch {row['first_off']} for it; by the log these are "
            f"{row['told']} and {row['leader_epoch']}."
        )
    answer = "no offset" if row["told"] < 0 else f"offset {row['told']}"
    return (
        f"For timestamp {row['asked_ms']} in {row['topic']}-{row['partition']} broker "
        f"{row['node']} returned {answer}; by the log it is {row['first_off']}."
    )


GUARANTEE = Guarantee(
    name="time_index_wrong",
    rank=40,
    about="a lookup by timestamp returned a wrong offset, or append times decreased",
    promise="ListOffsets answers the offset of the first message whose timestamp is greater than "
    "or equal to the given one, or of one with the largest, with its timestamp and leader epoch; "
    "LogAppendTime never decreases within a leader's log.",
    source="KIP-79; KIP-734; KIP-320; KIP-32",
    sub_kinds={
        "too late": "an earlier record has the requested timestamp or a later one",
        "too early": "the returned record is older than the requested timestamp",
        "none": "no offset was returned although a record is not older",
        "other epoch": "the returned leader epoch is not that of the record",
        "other time": "the returned timestamp is not that of the record",
        "not the newest": (
            "the record with the largest time is not the newest of those that were acknowledged "
            "before and still exist"
        ),
        "time went back": "with LogAppendTime, times fall within one leader epoch",
    },
    details=(
        "`too late`, `too early`, `none`: ListOffsets by time returns another offset than the "
        "final leader's log has.",
        "`other epoch`, `other time`: it returns a wrong epoch or time of the found record.",
    ),
    not_counted=(
        "Offsets below the log start, and records that were cleaned since. In compacted topics "
        "also records that a replica lacks.",
        "`none` of a broker that did not lead then, by ZooKeeper, or where the log has lost its "
        "begin to retention or an administrator (Apache Kafka searches a segment below the "
        "start).",
        "Topics with LogAppendTime for times and the newest record, which may be uncommitted. "
        "Clock faults for `time went back`.",
    ),
    opportunities=f"SELECT SUM(u.n) AS n FROM (SELECT COUNT(*) AS n {_ASKED} "
    f"UNION ALL SELECT COUNT(*) AS n {_BACK} WHERE b.prev_ms IS NOT NULL) u",
    violations=f"""
SELECT CASE WHEN f.told < 0 THEN 'none' WHEN f.first_off < f.told THEN 'too late'
    ELSE 'too early' END AS sub_kind,
  f.p, f.told AS off, f.at_ns, f.until_ns, h.value_id, f.node, f.asked_ms, f.told, f.first_off,
  CAST(NULL AS INT) AS leader_epoch, q.unclean_on, q.unclean_floor,
  q.lost_floor, q.spoilt_ns
FROM ({_FOUND}) f JOIN parts q ON q.p = f.p
LEFT JOIN (SELECT s.slot, s.value_id FROM slots s WHERE s.on_leader = 1) h
  ON h.slot = f.p * {SLOT} + GREATEST(f.told, 0)
LEFT JOIN (SELECT v.first_slot, v.complete_ns FROM vals v
           WHERE v.outcome = 'ok' AND v.acks = -1 AND v.first_slot IS NOT NULL) e
  ON e.first_slot = f.p * {SLOT} + f.first_off
LEFT JOIN (SELECT s.slot FROM slots s JOIN parts c ON c.p = s.p AND c.compacted = 1
           WHERE s.on_leader = 1 AND s.copies >= s.expected) w
  ON w.slot = f.p * {SLOT} + f.first_off
LEFT JOIN ({_LED}) d ON d.p = f.p AND d.node = f.node AND d.invoke_ns = f.at_ns
WHERE f.kind = 1 AND (
  (f.told < 0 AND q.log_start = 0 AND q.cut_to IS NULL AND f.first_off IS NOT NULL
    AND e.complete_ns < f.at_ns AND COALESCE(d.led, 1) = 1
    AND (q.compacted = 0 OR w.slot IS NOT NULL))
  OR (f.told >= q.log_start AND f.first_off < f.told AND (q.compacted = 0 OR w.slot IS NOT NULL))
  OR (f.told >= q.log_start AND h.slot IS NOT NULL
      AND (f.first_off IS NULL OR f.first_off > f.told)))
UNION ALL {_OTHER} UNION ALL {_not_newest(_BEFORE)} UNION ALL {_not_newest(_KNOWN)}
UNION ALL
SELECT 'time went back', b.p, b.off, NULL, NULL, b.value_id, NULL, b.timestamp_ms, b.off,
  b.prev_ms, b.leader_epoch, 0, 0, NULL, NULL {_BACK} WHERE b.prev_ms > b.timestamp_ms""",
    excuses=LOSSES,
    explain=_explain,
    tie="j.asked_ms, j.node",
    compares_times=True,
    needs=("replicas", "logs"),
    reads=(
        *("slots", "vals", "parts", "answers", "spans", "replicas", "parts.clock_moved"),
        *("parts.cut_to",),
    ),
    rests_on=("offset_answers", "replicas", "logs", "sends", "states"),
)
