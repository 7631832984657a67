"""The final state of each partition: its leader, its log, its settings."""

from __future__ import annotations

from collections.abc import Collection

from urteil.harness.scenario import Scenario, TopicFact
from urteil.harness.topic_settings import cleanup_policy, setting
from urteil.harness.verify.derived.state_spans import Span
from urteil.harness.verify.derived.topic_changes import unclean_election_requested
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import NO_OFFSET

LOG, ENDS, ENDS_NS = "urteil.log", "urteil.ends", "urteil.ends.ns"
"""Settings of a topic whose history was imported. `reads`: there is no log, and every record that
was read counts as visible. `unknown`: the ends that its final passes had to reach were not
recorded; otherwise the time before which the last of these ends was not requested."""


def part_row(
    key: tuple[str, int],
    p: int,
    topic: TopicFact | None,
    scenario: Scenario,
    spans: list[Span],
    logs: list[Row],
    passes: list[Row],
    assigned: Collection[int] = (),
) -> Row:
    """The partition's row of `partitions`, from its logs, states and settings."""
    leader = _final_leader(spans, passes, logs, assigned)
    leader_log = next((row for row in logs if row["broker"] == leader), None)
    replication = topic.replication_factor if topic else len(assigned or logs)
    seen_end = max((row["to_offset"] for row in passes), default=None)
    marks: list[int] = [mark for mark in (seen_end, _high(leader_log)) if mark is not None]
    policy = cleanup_policy(topic, scenario) if topic else "compact"
    return {
        "p": p,
        "topic_id": key[0],
        "topic": topic.name if topic else _topic_name(logs, passes, spans),
        "partition": key[1],
        "in_run": int(topic is not None),
        "workload_topic": int(topic is not None and topic.name in _workload_topics(scenario)),
        "copies": int(topic is not None and topic.copies),
        "final_leader": leader,
        "has_log": int(leader_log is not None),
        "log_start": (leader_log["log_start"] or 0) if leader_log else _highest_start(logs),
        "log_end": leader_log["log_end"] if leader_log else None,
        "committed_end": max(marks, default=0),
        "seen_end": seen_end,
        "replication": replication,
        "min_isr": min(int(setting(topic, scenario, "min.insync.replicas")), replication),
        "unclean_on": int(setting(topic, scenario, "unclean.leader.election.enable") == "true"),
        "foreign_permitted": int("foreign_records" in scenario.permits),
        "reads_are_log": int(topic is not None and topic.config.get(LOG) == "reads"),
        "checksums_known": int(topic is None or LOG not in topic.config),
        "ends_known": int(topic is None or topic.config.get(ENDS) != "unknown"),
        "ends_known_ns": _last_end_fetch_ns(topic, passes),
        "compacted": int("compact" in policy),
        "deletes": int("delete" in policy),
        "unclean_floor": NO_OFFSET,
        "last_epoch_ns": None,
        "agreed_end": NO_OFFSET,
        "lost_floor": None,
        "losses_ns": None,
    }


def _workload_topics(scenario: Scenario) -> set[str]:
    """The topics that the scenario declares; the run may create others."""
    return {topic.name for topic in scenario.workload.topics}


def administrators_changes(part: Row, ops: list[Row]) -> Row:
    """Columns that acts of administrators set."""
    requested = unclean_election_requested(ops, part["topic"], part["partition"])
    return {
        "unclean_requested": int(requested),
        "unclean_on": int(part["unclean_on"] or requested),
    }


def segments(logs: list[Row], leader: int | None) -> Row:
    """The highest log start, the first offset of the final leader's active segment, and the highest
    first offset of an active segment of any replica. -1 where the logs do not contain it."""
    leader_log = next((row for row in logs if row["broker"] == leader), None)
    active = None if leader_log is None else leader_log["active_base"]
    bases = [row["active_base"] for row in logs if row["active_base"] is not None]
    return {
        "max_start": _highest_start(logs),
        "active_base": -1 if active is None else active,
        "last_base": max(bases, default=-1),
    }


def late_pass_begin(part: Row, logs: list[Row], passes: list[Row], log_starts: set[int]) -> Row:
    """`late_pass_begin` is the highest offset at which a final pass began that missed only the
    first records of the log. It is one of `log_starts`, which brokers returned, since a reader may
    begin elsewhere. Null where there is none, and where the logs do not decide: they begin at
    several offsets, or an administrator deleted records (brokers write log starts to disk once a
    minute).

    `common_start` is the offset at which all logs begin, where no record was deleted or destroyed:
    the partition always began there.
    """
    starts = {row["log_start"] or 0 for row in logs}
    sole = len(starts) == 1 and not part["trimmed"]
    began = log_starts.intersection(row["from_offset"] for row in passes)
    latest = max((low for low in began if low < (part["seen_end"] or 0)), default=0)
    is_late = sole and latest > min(starts)
    kept = sole and not part["gone"] and part["lost_floor"] is None
    return {
        "late_pass_begin": latest if is_late else None,
        "common_start": min(starts) if kept else None,
    }


def _last_end_fetch_ns(topic: TopicFact | None, passes: list[Row]) -> int | None:
    """The time at which a final pass last requested its end; all records that were acknowledged
    before are below it."""
    if topic is not None and ENDS_NS in topic.config:
        return int(topic.config[ENDS_NS])
    return max((row["begin_ns"] for row in passes if row["begin_ns"] is not None), default=None)


def _highest_start(logs: list[Row]) -> int:
    """The highest log start of all replicas; below it, some replica has deleted records."""
    return max((row["log_start"] or 0 for row in logs), default=0)


def _high(log: Row | None) -> int | None:
    return None if log is None else log["high_watermark"]


def _topic_name(logs: list[Row], passes: list[Row], spans: list[Span]) -> str:
    names = [row["topic"] for row in (*logs, *passes)] + [span.topic for span in spans]
    return next((str(name) for name in names if name), "?")


def _final_leader(
    spans: list[Span], passes: list[Row], logs: list[Row], assigned: Collection[int]
) -> int | None:
    """The last leader: by ZooKeeper, else by the last final pass, else the broker of the only log.

    None if that broker has no log: the logs of others may lack records that it never replicated. If
    it is no longer a replica, and all replicas have a log, the result is the replica with the
    longest log: only these logs could restore the partition.
    """
    log_ends = {row["broker"]: row["log_end"] or 0 for row in logs}
    leaders = [span.leader for span in spans if span.leader >= 0]
    if not leaders:
        recent_passes = sorted(passes, key=lambda row: int(row["end_ns"] or 0))
        leaders = [row["leader"] for row in recent_passes if row["leader"] is not None]
    if not leaders and len(log_ends) == 1:
        leaders = list(log_ends)
    if not leaders:
        return None
    replicas, last = set(assigned), int(leaders[-1])
    if last not in log_ends and last not in replicas and replicas and replicas <= log_ends.keys():
        return int(max(replicas, key=lambda broker: (log_ends[broker], broker)))
    return last if last in log_ends else None
