"""A live group, or a live reader without a group, receives the acknowledged records.

Judged in undisturbed intervals: no fault acted, no leader was elected, and no member joined,
left, paused or resumed. Within one, a group may stand still for twice its session timeout and 10
s (and max.poll.interval.ms more while a member does not poll), a reader for 20 s, a final reader
for 30 s. The pending records were acknowledged with acks=all before the interval, lie in the
final log at their offsets, and no member was ever beyond them. All members polled until the end:
a client that hangs is no finding. Readers of committed records are judged only in runs without
transactions.

Further sub-kinds of an undisturbed interval: not every commit of a group fails; a member that
polls is not removed again and again (`expulsions`), nor by a new coordinator (`takeovers`); a
group does not wait for a member that left or whose session has expired (`departures`), and a
static member that returns within its session timeout causes no rebalance (`returns`). `turned
away`: a final reader is not sent again and again to a log start that is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place

_TURNED_AWAY = """
FROM (SELECT b.p, b.client, b.session, b.from_offset, b.last_ns,
        SUM(CASE WHEN f.complete_ns > b.last_ns - 20000000000 THEN 1 ELSE 0 END) AS times,
        MIN(f.complete_ns) AS first_ns
      FROM (SELECT q.p, w.client, w.session, w.from_offset, w.begin_ns,
              MAX(f.complete_ns) AS last_ns
            FROM passes w JOIN parts q ON q.topic_id = w.topic_id AND q.partition = w.partition
            JOIN polls f ON f.client = w.client AND f.session = w.session AND f.outcome = 'fail'
              AND f.error = 'OffsetOutOfRangeError' AND f.complete_ns > w.begin_ns
            WHERE w.final AND NOT w.complete AND q.gone = 0
            GROUP BY q.p, w.client, w.session, w.from_offset, w.begin_ns) b
      JOIN polls f ON f.client = b.client AND f.session = b.session AND f.outcome = 'fail'
        AND f.error = 'OffsetOutOfRangeError' AND f.complete_ns > b.begin_ns
      GROUP BY b.p, b.client, b.session, b.from_offset, b.last_ns) t
JOIN (SELECT a.p, a.invoke_ns, a.offset FROM answers a
      WHERE a.kind = 'earliest' AND a.error IS NULL) e
  ON e.p = t.p AND e.invoke_ns > t.last_ns - 20000000000 AND e.invoke_ns <= t.last_ns
WHERE t.times >= 20 AND t.first_ns <= t.last_ns - 20000000000
GROUP BY t.p, t.client, t.from_offset, t.first_ns, t.last_ns, t.times
HAVING COUNT(*) >= 10 AND MIN(e.offset) = t.from_offset AND MAX(e.offset) = t.from_offset
"""
"""Final readers that for at least 20 s received a log start at which a fetch was out of range. A
log start that moves meanwhile does not count."""
_STILL = "c.live = 1 AND c.to_ns - c.from_ns >= c.bound_ns"


def _explain(row: Mapping[str, Any]) -> str:
    calm_s = f"{float(row['calm_s']):.1f} s"
    if row["sub_kind"] == "put out at takeover":
        return (
            f"{row['who']} was removed from its group {calm_s} after broker {row['reached']} "
            "became its coordinator, sooner than its session timeout."
        )
    if row["sub_kind"] == "member put out":
        return (
            f"{row['who']} was removed from its group {row['waiting']} times in {calm_s}, although "
            "it polled all the time and no fault acted."
        )
    if row["sub_kind"] == "turned away":
        return (
            f"{row['who']} received {row['off']} as log start of "
            f"{row['topic']}-{row['partition']} for {calm_s}, and an out-of-range error there "
            f"{row['waiting']} times in the last 20 s."
        )
    if row["sub_kind"] == "rebalanced":
        return (
            f"{row['who']}, a static member, returned {calm_s} after it was killed, within its "
            f"session timeout, but in a later generation (by {row['waiting']})."
        )
    if row["sub_kind"] == "commits stand still":
        return (
            f"{row['who']} could commit no offset in {calm_s} in which no fault acted, although "
            f"its members tried {row['waiting']} times at the end."
        )
    if row["sub_kind"] == "left behind":
        return (
            f"{row['who']} left its group, and for {calm_s} no member was assigned "
            f"{row['topic']}-{row['partition']}, although others were running."
        )
    if row["sub_kind"] == "kept dead":
        return (
            f"{row['who']} was killed, and for {calm_s}, longer than its session timeout and a "
            f"rebalance, no member was assigned {row['topic']}-{row['partition']}, although others "
            "of its group were running."
        )
    return (
        f"{row['who']} received no record of {row['topic']}-{row['partition']} at the end of "
        f"{calm_s} in which no fault acted, although {row['waiting']} "
        f"acknowledged records waited from {place(row)} on and its clients polled."
    )


GUARANTEE = Guarantee(
    name="no_delivery",
    rank=20,
    about="a live group or reader received none of the acknowledged records",
    promise="A consumer that sends no heartbeats within its session timeout is removed from its "
    "group and a rebalance begins, unless a static member returns before; consumers see "
    "the records that were committed to the log.",
    source="Kafka documentation, Consumer Configs: session.timeout.ms; 4.6 Message Delivery "
    "Semantics; KIP-62; KIP-345",
    sub_kinds={
        "group stands still": "a group received nothing of a partition",
        "consumer stands still": "a reader without a group received nothing of a partition",
        "final reader stands still": "a final reader received nothing of a partition",
        "commits stand still": "in such a time all of a group's commits failed, three or more",
        "member put out": (
            "a member was put out of its group three times, though it had polled all through its "
            "session timeout"
        ),
        "put out at takeover": (
            "it was put out once, less than its session timeout and 3 s after another broker had "
            "become its coordinator"
        ),
        "left behind": (
            "no member got the partitions of a member that left, for half its session timeout, "
            "where that is 15 s or longer"
        ),
        "kept dead": (
            "no member got the partitions of a killed member for its session timeout and 8 s"
        ),
        "rebalanced": (
            "a killed static member was back within two thirds of its session timeout, less a "
            "second, and continued in a later generation"
        ),
        "turned away": (
            "for 20 s or more a final reader got the answer that a partition begins at one "
            "offset, and at least twenty times that this offset does not exist"
        ),
    },
    details=(
        "A group, or a single reader, got nothing of a partition for twice its session timeout + "
        "10 s (a reader 20 s, a final reader 30 s), though all its clients polled to the end and "
        "records waited. These records were acknowledged with acks=all before, are where they "
        "were acknowledged, and are beyond everything that it ever read or committed.",
        "A group counts for the topics of which it was ever assigned a partition.",
    ),
    not_counted=(
        "Times in which a fault acted, a leader changed, or a member came, went, paused or "
        "resumed: the wait counts from then on.",
        "Times after a quota: Apache Kafka delays a client that exceeded it for minutes, also "
        "after the quota is removed.",
        "Clients that did not poll, and `max.poll.interval.ms` more while a member does not poll.",
        "Readers of committed records where there are transactions.",
        "Evictions within a session timeout and 5 s of a fault or of a change of leader of the "
        "offsets topic. At a takeover, where anything but crashes, shutdowns and elections of "
        "preferred leaders acted, or the group was disturbed in the 5 s before.",
        "Members that left or were killed where another fault than `rebalance_storm` or "
        "`kill_client` acted, where such a change happened, or where no other member lived so "
        "long.",
        "Killed members where the group assigned something in the 3 s before, and `rebalanced` "
        "where another member came or went meanwhile.",
    ),
    opportunities=f"""SELECT SUM(o.n) AS n
FROM (SELECT COUNT(*) AS n FROM calms c WHERE c.moved = 1 OR ({_STILL})
      UNION ALL SELECT COUNT(*) FROM expulsions UNION ALL SELECT COUNT(*) FROM departures
      UNION ALL SELECT COUNT(*) FROM returns) o""",
    violations=f"""
SELECT c.kind || ' stands still' AS sub_kind, c.p, MIN(v.ack_off) AS off,
  c.to_ns - c.bound_ns AS at_ns, c.to_ns AS until_ns, c.who, c.reached, COUNT(*) AS waiting,
  CAST(c.to_ns - c.from_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS calm_s
FROM calms c JOIN vals v ON v.sent_p = c.p
WHERE {_STILL} AND c.lately = 0 AND v.outcome = 'ok' AND v.acks = -1 AND v.at_ack = 1
  AND v.ack_off >= c.reached AND v.complete_ns <= c.to_ns - c.bound_ns
GROUP BY c.kind, c.p, c.to_ns, c.bound_ns, c.who, c.reached, c.from_ns
UNION ALL
SELECT 'commits stand still', CAST(NULL AS INT), CAST(NULL AS BIGINT),
  MAX(c.to_ns - c.bound_ns), MAX(c.to_ns), c.who, CAST(NULL AS BIGINT), MAX(c.tried),
  CAST(MAX(c.to_ns - c.from_ns) AS DOUBLE) / CAST(1000000000 AS DOUBLE)
FROM calms c WHERE {_STILL} AND c.kind = 'group' AND c.committed = 0 AND c.tried > 2
GROUP BY c.who
UNION ALL
SELECT CASE WHEN e.leader IS NULL THEN 'member put out' ELSE 'put out at takeover' END, e.p,
  CAST(NULL AS BIGINT), e.from_ns, e.to_ns, e.who, CAST(e.leader AS BIGINT), e.times,
  CAST(e.to_ns - e.from_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE)
FROM expulsions e
UNION ALL
SELECT CASE WHEN d.died = 1 THEN 'kept dead' ELSE 'left behind' END, d.p, NULL, d.left_ns,
  d.limit_ns, d.who, NULL, NULL,
  CAST(d.limit_ns - d.left_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE)
FROM departures d WHERE d.taken_ns IS NULL OR d.taken_ns > d.limit_ns
UNION ALL
SELECT 'rebalanced', r.p, NULL, r.died_ns, r.back_ns, r.who, NULL, r.after - r.before,
  CAST(r.back_ns - r.died_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE)
FROM returns r WHERE r.after > r.before
UNION ALL
SELECT 'turned away', t.p, t.from_offset, t.first_ns, t.last_ns, t.client, NULL, t.times,
  CAST(t.last_ns - t.first_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) {_TURNED_AWAY}""",
    explain=_explain,
    tie="j.who",
    compares_times=True,
    host_load_excuses=True,
    despite_host_load=frozenset({"turned away"}),
    needs=("sends", "polls"),
    reads=(
        *("vals", "parts", "answers", "calms", "expulsions", "departures", "returns"),
        *("passes", "polls"),
    ),
    rests_on=(
        *("sends", "replicas", "logs", "polls", "clients", "faults", "states", "commits"),
        *("assignments", "passes", "offset_answers"),
    ),
    subjects=("calms", "expulsions", "departures", "returns", "answers"),
)
