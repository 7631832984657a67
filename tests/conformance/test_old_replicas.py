"""Clusters of three that start over logs of other releases: replicas copy them, compaction and
retention shorten them, and clients of every age read the same from Apache Kafka's and from ours.

Brokers 1 and 2 find the logs on their disks; the replica on broker 3 begins with nothing.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.broker.log.old_folders import OldLog, Row, draw
from tests.conformance.conftest import Pair
from tests.conformance.old_logs import EARLIEST, OldLogReader, differences
from tests.conformance.side import Side
from tests.conformance.test_partitions import alter, elect, partitions
from urteil.chaos.controls import Controls

DAY_S = 24 * 3600
WEEK_MS = str(7 * DAY_S * 1000)
FOREVER = {"retention.ms": "-1"}
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
DEADLINE_S = 60.0
"""Retention begins half a minute after a start."""


@dataclass(frozen=True)
class OldTopic:
    """Logs by partition. `aged` are names of their files that were last written a month ago."""

    name: str
    logs: Sequence[OldLog]
    configs: Mapping[str, str]
    aged: Sequence[Sequence[str]] = field(default_factory=list)

    def write(self, data: Path) -> None:
        for number, log in enumerate(self.logs):
            folder = data / f"{self.name}-{number}"
            for path in folder.iterdir():
                if path.name != "partition.metadata":
                    path.unlink()
            log.write(folder)
            for name in self.aged[number] if self.aged else ():
                written_s = (folder / name).stat().st_mtime - 30 * DAY_S
                os.utime(folder / name, (written_s, written_s))

    def ends(self) -> dict[str, int]:
        """The rows of a checkpoint that names every log's end."""
        return {f"{self.name} {n}": log.rows[-1].offset + 1 for n, log in enumerate(self.logs)}


def undamaged_logs(*magics: int, segments: int = 1, take: int = 1) -> list[OldLog]:
    """The first logs without damage that hold just these formats, in that many segments."""
    drawn = (draw(seed, clean=True) for seed in itertools.count(1000))
    fitting = (
        log
        for log in drawn
        if {batch.magic for batch in log.batches} == set(magics)
        and len(log.bases) == segments
        and not log.hurt_file
        and not log.leaps
    )
    return list(itertools.islice(fitting, take))


@contextmanager
def stopped_brokers(side: Side, *brokers: int) -> Iterator[Controls]:
    """These brokers are stopped one after the other, and start again in the end."""
    assert side.controls is not None, "clusters that URTEIL_CONFORMANCE names are not stopped"
    side.close()
    for broker in brokers:
        side.controls.stop(f"b{broker}")
    try:
        yield side.controls
    finally:
        for broker in brokers:
            side.controls.start(f"b{broker}")
        side.until(side.answers, deadline_s=30)


def add_rows(path: Path, added: Mapping[str, int]) -> None:
    """Put these offsets into a checkpoint."""
    rows = dict(line.rsplit(" ", 1) for line in path.read_text().splitlines()[2:])
    rows |= {slot: str(offset) for slot, offset in added.items()}
    lines = [f"{slot} {offset}" for slot, offset in rows.items()]
    path.write_text("\n".join(["0", str(len(lines)), *lines]) + "\n")


def start_over(side: Side, topics: Sequence[OldTopic]) -> None:
    for topic in topics:
        side.create(topic.name, ((1, 2),) * len(topic.logs), topic.configs)
    with stopped_brokers(side, 1, 2) as controls:
        for node in ("b1", "b2"):
            with controls.disks.open_log_directories(node) as (data,):
                for topic in topics:
                    topic.write(data)
                    for kind in ("recovery-point-offset", "replication-offset"):
                        add_rows(data / f"{kind}-checkpoint", topic.ends())
    for topic in topics:
        move(side, topic, [2, 1])


def move(side: Side, topic: OldTopic, replicas: Sequence[int]) -> None:
    """Have these replicas, all in sync, the first of them the leader."""
    numbers = range(len(topic.logs))
    alter(side, {(topic.name, number): replicas for number in numbers})

    def in_sync() -> bool:
        known = partitions(side, topic.name)["partitions"]
        return all(partition["isr_nodes"] == sorted(replicas) for partition in known)

    def led() -> bool:
        elect(side, {topic.name: list(numbers)}, 2)
        return all(side.serves(topic.name, number, replicas[0]) for number in numbers)

    side.until(in_sync, deadline_s=DEADLINE_S)
    side.until(led, deadline_s=DEADLINE_S)


def run_on_both(pair: Pair, do: Callable[[Side], None]) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(do, (pair.ours, pair.theirs)))


def begin_at(side: Side, topic: OldTopic, leader: int, offsets: Sequence[int]) -> bool:
    """Whether the partitions begin there."""
    reader = OldLogReader(side, topic.name, leader)
    return all(reader.offset(n, EARLIEST)[0] == offset for n, offset in enumerate(offsets))


def same_records(pair: Pair, topic: OldTopic, leader: int, followers: Sequence[int]) -> None:
    """Every replica of both serves all that was written, and the leaders say the same of it."""
    for number, log in enumerate(topic.logs):
        readers = [OldLogReader(side, topic.name, leader) for side in (pair.ours, pair.theirs)]
        for reader in readers:
            assert reader.rows(number, log) == log.rows, (reader.side.name, log.what)
            for broker in followers:
                follower = OldLogReader(reader.side, topic.name, broker)
                assert follower.rows(number, log, reader) == log.rows, (reader.side.name, log.what)
        assert not list(differences(*readers, number, log)), log.what


def is_compacted(rows: Sequence[Row], log: OldLog) -> bool:
    """Whether no key is there twice in closed segments, nor a record without a key."""
    keys = [row.key for row in rows if row.offset < log.bases[-1]]
    return None not in keys and len(keys) == len(set(keys))


def compacted_rows(side: Side, topic: OldTopic, number: int, broker: int) -> list[Row]:
    """What this replica holds once its closed segments were cleaned; broker 2 leads."""
    leader, replica = (OldLogReader(side, topic.name, to) for to in (2, broker))
    log, rows = topic.logs[number], []

    def is_clean() -> bool:
        rows[:] = replica.rows(number, log, leader)
        return is_compacted(rows, log)

    side.until(is_clean, deadline_s=DEADLINE_S)
    return rows


def create_topics(pair: Pair) -> list[OldTopic]:
    kept = [
        *undamaged_logs(0),
        *undamaged_logs(1),
        *undamaged_logs(0, 1),
        *undamaged_logs(1, 2),
        *undamaged_logs(0, 2),
        *undamaged_logs(0, 1, 2),
    ]
    compacted = [
        *undamaged_logs(0, segments=3),
        *undamaged_logs(1, segments=3),
        *undamaged_logs(0, 1, 2, segments=3),
    ]
    of_time = [*undamaged_logs(0, segments=3, take=2), *undamaged_logs(1, segments=3)]
    aged = [[f"{base:020d}.log" for base in of_time[0].bases[:2]], [], []]
    of_size = [
        *undamaged_logs(0, segments=3),
        *undamaged_logs(1, segments=3),
        *undamaged_logs(0, 1, segments=3),
    ]
    return [
        OldTopic(pair.name("old-kept"), kept, FOREVER),
        OldTopic(pair.name("old-compacted"), compacted, FOREVER | COMPACT),
        OldTopic(pair.name("old-time"), of_time, {"retention.ms": WEEK_MS}, aged),
        OldTopic(pair.name("old-size"), of_size, FOREVER | {"retention.bytes": "1"}),
    ]


pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def topics(pair: Pair) -> list[OldTopic]:
    """Found by brokers 1 and 2 of both at their start; broker 2 leads."""
    created = create_topics(pair)
    run_on_both(pair, lambda side: start_over(side, created))
    return created


def test_new_replica_serves_old_logs_as_its_leader_does(pair: Pair, topics: list[OldTopic]) -> None:
    kept = topics[0]
    same_records(pair, kept, 2, [1])
    run_on_both(pair, lambda side: move(side, kept, [3, 1, 2]))
    same_records(pair, kept, 3, [1, 2])


def test_old_logs_are_compacted_alike_on_every_replica(pair: Pair, topics: list[OldTopic]) -> None:
    topic = topics[1]
    for number, log in enumerate(topic.logs):
        first, *others = [
            compacted_rows(side, topic, number, broker)
            for side in (pair.ours, pair.theirs)
            for broker in (1, 2)
        ]
        assert others == [first] * 3, log.what
        assert set(first) < set(log.rows), log.what


def test_old_segments_expire_by_time_and_size(pair: Pair, topics: list[OldTopic]) -> None:
    """Messages of magic 0 by the time when their file was written, those of magic 1 by their own;
    of the third log all are too old."""
    *_, of_time, of_size = topics
    aged, fresh, timed = of_time.logs
    left = {
        of_time.name: [aged.bases[2], fresh.bases[0], timed.rows[-1].offset + 1],
        of_size.name: [log.bases[2] for log in of_size.logs],
    }

    def shorten(side: Side) -> None:
        for topic in (of_time, of_size):
            expected = left[topic.name]
            side.until(lambda t=topic, e=expected: begin_at(side, t, 2, e), deadline_s=DEADLINE_S)

    run_on_both(pair, shorten)
    for topic in (of_time, of_size):
        run_on_both(pair, lambda side, topic=topic: move(side, topic, [1, 2]))
        for side in (pair.ours, pair.theirs):
            assert begin_at(side, topic, 1, left[topic.name])
