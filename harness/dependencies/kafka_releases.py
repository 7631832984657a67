"""The releases of Apache Kafka that are targets, and what each takes to start.

A line of releases (2.3) declares its Scala version, its profiles of `compose/kafka/pom.xml` and the
metadata planes on which the lab starts it. Releases before 0.10.2 have one listener and are no
targets; from 4.0 on there is no ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

NEWEST = "3.9.1"
"""The newest release with ZooKeeper: the target `kafka` without a version."""
FIRST_OF_LOG4J2 = (4, 0)
Version = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLine:
    """A line of releases with the same needs."""

    name: str
    patches: tuple[int, ...]
    scala: str = "2.13"
    profiles: tuple[str, ...] = ()
    settings: Mapping[str, str] | None = None
    """Broker settings whose defaults differ from later releases' in what the lab depends on."""
    has_zookeeper: bool = True
    has_kraft: bool = False

    @property
    def versions(self) -> tuple[str, ...]:
        return tuple(f"{self.name}.{patch}" for patch in self.patches)

    @property
    def maven_options(self) -> list[str]:
        """The options with which Maven resolves the pom for this line."""
        profiles = [f"-P{','.join(self.profiles)}"] if self.profiles else []
        return [f"-Dscala.version={self.scala}", *profiles]


JAXB, ZOOKEEPER_CLIENT = ("jaxb",), ("zookeeper-client",)
LOG4J2 = ("log4j2",)
KRAFT_ONLY = {"4.0": (0, 1, 2), "4.1": (0, 1, 2), "4.2": (0, 1, 2), "4.3": (0, 1), "4.4": (0,)}
DELETES_TOPICS = {"delete.topic.enable": "true"}

LINES = (
    ReleaseLine(name="0.10.2", patches=(2,), scala="2.12", profiles=JAXB, settings=DELETES_TOPICS),
    ReleaseLine(
        name="0.11.0", patches=(0, 1, 2, 3), scala="2.12", profiles=JAXB, settings=DELETES_TOPICS
    ),
    ReleaseLine(name="1.0", patches=(0, 1, 2), scala="2.12"),
    ReleaseLine(name="1.1", patches=(0, 1), scala="2.12"),
    ReleaseLine(name="2.0", patches=(0, 1), scala="2.12", profiles=ZOOKEEPER_CLIENT),
    ReleaseLine(name="2.1", patches=(0, 1), scala="2.12", profiles=ZOOKEEPER_CLIENT),
    ReleaseLine(name="2.2", patches=(0, 1, 2), scala="2.12", profiles=ZOOKEEPER_CLIENT),
    ReleaseLine(name="2.3", patches=(0, 1), scala="2.12", profiles=ZOOKEEPER_CLIENT),
    ReleaseLine(name="2.4", patches=(0, 1), profiles=ZOOKEEPER_CLIENT),
    ReleaseLine(name="2.5", patches=(0, 1)),
    ReleaseLine(name="2.6", patches=(0, 1, 2, 3)),
    ReleaseLine(name="2.7", patches=(0, 1, 2)),
    ReleaseLine(name="2.8", patches=(0, 1, 2)),
    ReleaseLine(name="3.0", patches=(0, 1, 2)),
    ReleaseLine(name="3.1", patches=(0, 1, 2)),
    ReleaseLine(name="3.2", patches=(0, 1, 2, 3)),
    ReleaseLine(name="3.3", patches=(1, 2), has_kraft=True),
    ReleaseLine(name="3.4", patches=(0, 1), has_kraft=True),
    ReleaseLine(name="3.5", patches=(0, 1, 2), has_kraft=True),
    ReleaseLine(name="3.6", patches=(0, 1, 2), has_kraft=True),
    ReleaseLine(name="3.7", patches=(0, 1, 2), has_kraft=True),
    ReleaseLine(name="3.8", patches=(0, 1), has_kraft=True),
    ReleaseLine(name="3.9", patches=(0, 1), has_kraft=True),
    *(
        ReleaseLine(
            name=name, patches=patches, profiles=LOG4J2, has_zookeeper=False, has_kraft=True
        )
        for name, patches in KRAFT_ONLY.items()
    ),
)

SETTINGS_SINCE: Mapping[str, Version] = {
    "group.initial.rebalance.delay.ms": (0, 11),
    "transaction.state.log.num.partitions": (0, 11),
    "transaction.state.log.replication.factor": (0, 11),
    "transaction.state.log.min.isr": (0, 11),
    "transaction.max.timeout.ms": (0, 11),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (0, 11),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (0, 11),
    "group.max.size": (2, 2),
    "kafka.security.authorizer.AclAuthorizer": (2, 4),
    "replica.selector.class": (2, 4),
    "producer.id.expiration.check.interval.ms": (2, 8),
    "log.initial.task.delay.ms": (3, 5),
    "max.compaction.lag.ms": (2, 3),
    "message.timestamp.before.max.ms": (3, 6),
    "message.timestamp.after.max.ms": (3, 6),
    "group.consumer.session.timeout.ms": (3, 7),
    "group.consumer.min.session.timeout.ms": (3, 7),
    "group.consumer.heartbeat.interval.ms": (3, 7),
    "group.consumer.min.heartbeat.interval.ms": (3, 7),
    "controller.quorum.bootstrap.servers": (3, 9),
    "group.share.delivery.count.limit": (4, 0),
    "group.share.min.record.lock.duration.ms": (4, 0),
    "group.share.session.timeout.ms": (4, 0),
    "group.share.min.session.timeout.ms": (4, 0),
    "group.share.heartbeat.interval.ms": (4, 0),
    "group.share.min.heartbeat.interval.ms": (4, 0),
    "share.coordinator.state.topic.num.partitions": (4, 0),
}
"""The first release that knows a setting of a broker or a topic, or a class that is a setting's
value. All releases know the others that the lab sets, `SETTINGS_UNTIL` apart."""

SETTINGS_UNTIL: Mapping[str, Version] = {
    "controlled.shutdown.max.retries": (4, 0),
    "controlled.shutdown.retry.backoff.ms": (4, 0),
    "log.message.format.version": (4, 0),
    "message.format.version": (4, 0),
    "inter.broker.protocol.version": (4, 0),
}
"""The first release that no longer knows a setting."""

LOWEST_VALUES: Mapping[str, tuple[Version, int]] = {
    "segment.bytes": ((4, 0), 1 << 20),
    "log.segment.bytes": ((4, 0), 1 << 20),
}
"""The lowest value of a setting, and the first release that requires it (KIP-1030)."""

UNBOUNDED_NAMES: Mapping[str, tuple[Version, str]] = {
    "segment.bytes": ((4, 1), "internal.segment.bytes"),
}
"""The name under which a topic has a lower value, and the first release that knows it."""

DISPENSABLE = frozenset({"max.compaction.lag.ms"})
"""Settings of topics without which a scenario still has its subject. They are left out."""


def release_line(version: str) -> ReleaseLine:
    """The line of a release. Raises ValueError with the releases that there are."""
    for line in LINES:
        if version in line.versions:
            return line
    reason = f"there is no release {version} of Apache Kafka, or the lab cannot start it"
    raise ValueError(f"{reason}: releases are {abbreviate(LINES)}")


def line_before(version: str) -> ReleaseLine:
    """The line before that of a release. Raises ValueError for the first one."""
    at = LINES.index(release_line(version))
    if not at:
        raise ValueError(f"there is no release before {version}, from which it could be upgraded")
    return LINES[at - 1]


def releases() -> Iterator[str]:
    """All releases, the oldest first."""
    for line in LINES:
        yield from line.versions


def knows_setting(version: str, setting: str) -> bool:
    """Whether a release knows a setting, or a class, of the lab."""
    parsed = parse_version(version)
    until = SETTINGS_UNTIL.get(setting)
    return parsed >= SETTINGS_SINCE.get(setting, ()) and (until is None or parsed < until)


def lowest_value(version: str, setting: str) -> int | None:
    """The lowest value that a release accepts; None where the lab sets no lower one."""
    parsed = parse_version(version)
    since, lowest = LOWEST_VALUES.get(setting, (parsed, 0))
    unbounded_since, _ = UNBOUNDED_NAMES.get(setting, ((*parsed, 0), ""))
    return lowest if lowest and since <= parsed < unbounded_since else None


def topic_setting(version: str, setting: str, value: str) -> str:
    """The name under which a release takes a value of a topic's setting."""
    parsed = parse_version(version)
    required_since, lowest = LOWEST_VALUES.get(setting, (parsed, 0))
    since, name = UNBOUNDED_NAMES.get(setting, (parsed, setting))
    is_low = parsed >= required_since and int(value) < lowest if lowest else False
    return name if is_low and parsed >= since else setting


def parse_version(version: str) -> Version:
    """A release as a tuple that compares."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def abbreviate(lines: Iterable[ReleaseLine]) -> str:
    """The releases of lines, in words."""
    ends = [(line.versions[0], line.versions[-1]) for line in lines]
    return ", ".join(first if first == last else f"{first} to {last}" for first, last in ends)
