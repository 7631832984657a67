"""What a topic's settings promise about deletion and compaction, and what may have voided it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from urteil.chaos.effects import Effect
from urteil.harness.scenario import RunFacts, Scenario, TopicFact
from urteil.harness.verify.derived.fault_effects import OF_DISKS, has_any
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.limits import FOREVER_NS

_MS_NS = 1_000_000
_BROKER_WIDE = {
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "retention.ms": "log.retention.ms",
    "flush.ms": "log.flush.interval.ms",
    "segment.ms": "log.roll.ms",
    "segment.bytes": "log.segment.bytes",
    "retention.bytes": "log.retention.bytes",
    "message.timestamp.type": "log.message.timestamp.type",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
}
_LIMITS = {
    "max.message.bytes": "max_bytes",
    "message.timestamp.before.max.ms": "past_ms",
    "message.timestamp.after.max.ms": "future_ms",
}
_FLUSHES = ("log.flush.scheduler.interval.ms", "log.flush.offset.checkpoint.interval.ms")
_FLUSH_SLACK_NS = 3_000_000_000
_COARSER = frozenset({"log.retention.hours", "log.retention.minutes"})
OWN_TARGETS = ("urteil", "kafka", "mix")
"""Targets whose brokers the lab configures, so that an unset setting has Kafka's default."""
WEEK_MS = "604800000"


def retention_columns(
    topic: TopicFact | None,
    scenario: Scenario,
    facts: RunFacts,
    faults: Iterable[Row],
    admin: Iterable[Row],
) -> Row:
    """Columns of the derived table `partitions`: the promises about the topic's records, in ns.

    `retention_ns` and `retention_bytes` are null where retention is unknown, and FOREVER_NS or -1
    where it is unlimited; `retention_configured` is 0 where they are Kafka's defaults.
    `clock_moved` is 1 if a fault moved a clock, `trimmed` is 1 if an administrator deleted records
    or changed retention, and `sent_times` is 1 if records keep the timestamps of their producers.
    `max_bytes` limits batches, `past_ms` and `future_ms` the distance of records' timestamps from
    the time of their sends; each is null where it is not set, or an administrator changed it.
    `segment_ms` and `segment_bytes` limit a segment; null where not set. `flush_ns` is the time
    after its append in which a record may be lost with a disk's cache; null where brokers are not
    configured to flush by time. `dirty_ratio` is the dirty share above which a log is cleaned; null
    where not set. `late_ns` is the time after its expiry in which a segment may still exist; null
    where the interval of the brokers' checks is not set. `ends_ns` is the end of the run, `calm_ns`
    the time when the last fault was healed.
    """
    faults, admin = list(faults), list(admin)
    healed = [row["healed_ns"] or row["end_ns"] or FOREVER_NS for row in faults]
    loads = [phase.end_ns for phase in facts.phases]
    delete_ms = _topic_setting(topic, scenario, "delete.retention.ms", "86400000")
    minimum_ms = _topic_setting(topic, scenario, "min.compaction.lag.ms", "0")
    stamped = _topic_setting(topic, scenario, "message.timestamp.type", "CreateTime")
    dirty = _topic_setting(topic, scenario, "min.cleanable.dirty.ratio", None)
    configured_ms = _topic_setting(topic, scenario, "retention.ms", None)
    kept_ms = configured_ms or _default_ms(topic, scenario, facts)
    return {
        "delete_retention_ns": _ns(delete_ms),
        "min_lag_ns": _ns(minimum_ms),
        "max_lag_ns": _ns(_topic_setting(topic, scenario, "max.compaction.lag.ms", None)),
        "dirty_ratio": None if dirty is None else float(dirty),
        "retention_ns": _ns(kept_ms),
        "retention_configured": int(configured_ms is not None),
        "retention_bytes": _number(_topic_setting(topic, scenario, "retention.bytes", None)),
        "late_ns": _late_ns(topic, scenario, faults),
        "segment_ms": _number(_topic_setting(topic, scenario, "segment.ms", None)),
        "segment_bytes": _number(_topic_setting(topic, scenario, "segment.bytes", None)),
        "flush_ns": _flush_ns(topic, scenario),
        "append_time": int(stamped == "LogAppendTime"),
        "sent_times": int(stamped != "LogAppendTime" and not any(map(_stamps, admin))),
        "clock_moved": int(any(has_any(row, {Effect.MOVES_CLOCKS}) for row in faults)),
        "trimmed": int(any(trims(row, topic) for row in admin)),
        "ends_ns": max(loads, default=FOREVER_NS),
        "calm_ns": max(healed, default=-FOREVER_NS),
    } | _limits(topic, scenario, admin)


def _limits(topic: TopicFact | None, scenario: Scenario, admin: Iterable[Row]) -> Row:
    names = {*_LIMITS, *map(_BROKER_WIDE.__getitem__, _LIMITS)}
    is_known = topic is not None and not any(names & changes(row).keys() for row in admin)
    values = {_LIMITS[name]: _topic_setting(topic, scenario, name, None) for name in _LIMITS}
    return {column: _number(value) if is_known else None for column, value in values.items()}


def _topic_setting(
    topic: TopicFact | None, scenario: Scenario, name: str, default: str | None
) -> str | None:
    own = {} if topic is None else topic.config
    return own.get(name, scenario.cluster.config.get(_BROKER_WIDE[name], default))


def _default_ms(topic: TopicFact | None, scenario: Scenario, facts: RunFacts) -> str | None:
    """Kafka's default of retention.ms, if the lab configured the brokers and no setting overrides
    it.

    Unknown for topics outside the workload, and for compacted ones.
    """
    brokers = scenario.cluster.config
    if topic is None or not facts.target.startswith(OWN_TARGETS) or brokers.keys() & _COARSER:
        return None
    policy = topic.config.get("cleanup.policy", brokers.get("log.cleanup.policy", "delete"))
    return WEEK_MS if policy == "delete" else None


def _late_ns(topic: TopicFact | None, scenario: Scenario, faults: Iterable[Row]) -> int | None:
    """One interval between two checks, and before the first check the delay after a start. The
    cleaner handles logs that are also compacted: it does not wait after a start, and gives up a log
    that it could not read or write."""
    brokers = scenario.cluster.config
    own = {} if topic is None else topic.config
    is_cleaned = "compact" in own.get("cleanup.policy", brokers.get("log.cleanup.policy", ""))
    looks = "log.cleaner.backoff.ms" if is_cleaned else "log.retention.check.interval.ms"
    every_ms = brokers.get(looks)
    damaged = any(has_any(row, OF_DISKS | {Effect.DAMAGES_FILES}) for row in faults)
    if every_ms is None or (is_cleaned and damaged):
        return None
    first_ms = "0" if is_cleaned else brokers.get("log.initial.task.delay.ms", "30000")
    return (int(every_ms) + int(first_ms)) * _MS_NS


def _flush_ns(topic: TopicFact | None, scenario: Scenario) -> int | None:
    """The longest time until a log is due, the flush task notices it, and the checkpoint is
    written."""
    brokers = scenario.cluster.config
    intervals = [_topic_setting(topic, scenario, "flush.ms", None), *map(brokers.get, _FLUSHES)]
    if None in intervals:
        return None
    first_ms = brokers.get("log.initial.task.delay.ms", "30000")
    return sum(int(interval or 0) for interval in (*intervals, first_ms)) * _MS_NS + _FLUSH_SLACK_NS


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _ns(text: str | None) -> int | None:
    """Milliseconds as ns; negative and overflowing values mean unlimited."""
    number = _number(text)
    if number is None:
        return None
    return FOREVER_NS if not 0 <= number < FOREVER_NS // _MS_NS else number * _MS_NS


def _stamps(row: Row) -> bool:
    """Whether an act changed the timestamp type."""
    return any(name.endswith("message.timestamp.type") for name in changes(row))


def trims(row: Row, topic: TopicFact | None) -> bool:
    """Whether an act deleted records of the topic, or changed its retention."""
    act, subject = str(row["act"] or "").lower(), str(row["subject"] or "")
    about = topic is None or not subject or _names(subject, topic.name)
    about = about and row["outcome"] != "fail"
    if "record" in act and ("delete" in act or "trim" in act):
        return about
    return about and any(
        name.startswith(("retention.", "segment.", "cleanup.", "delete.", "min.c", "max.c"))
        for name in changes(row)
    )


def _names(subject: str, topic: str) -> bool:
    """Whether the subject contains a topic, or one of its partitions, as a whole word."""
    return re.search(rf"(?<![\w.-]){re.escape(topic)}(-\d+)?(?![\w.-])", subject) is not None


def changes(row: Row) -> dict[str, tuple[str | None, str | None]]:
    """The settings that an administrative act changed: name to its values before and after."""
    before, after = _settings(row["before"]), _settings(row["after"])
    if "config" not in str(row["act"] or "").lower():
        return {}
    return {name: (before.get(name), after.get(name)) for name in before.keys() | after.keys()}


def _settings(text: str | None) -> dict[str, str]:
    """`{"name": "value"}` or `name=value, name=value`."""
    try:
        parsed: Any = json.loads(text or "{}")
    except ValueError:
        pairs = (pair.partition("=") for pair in (text or "").split(","))
        return {name.strip(): value.strip() for name, equal, value in pairs if equal}
    if not isinstance(parsed, dict):
        return {}
    return {str(name): str(value) for name, value in parsed.items()}
