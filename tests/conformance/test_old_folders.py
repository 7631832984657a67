"""Partitions that other releases wrote, damaged or not, opened by both: what Apache Kafka serves,
ours serves, and of what is whole both serve the same.

The folders are those that `tests/broker/log/test_old_folders.py` draws. `URTEIL_OLD_FOLDERS` says
how many are drawn for a start.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.broker.log.old_folders import OldLog, draw
from tests.conformance.old_logs import OldLogReader, differences
from tests.conformance.pair import LASTING
from tests.conformance.side import Side
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget, Target, UrteilTarget

FOLDERS = int(os.environ.get("URTEIL_OLD_FOLDERS", "40"))
CONFIG = LASTING | {"log.retention.ms": "-1", "log.message.downconversion.enable": "true"}


class Opener:
    """A cluster of one broker, whose partitions are replaced while it is down."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.cluster = Cluster(ClusterSpec(brokers=1, config=CONFIG), target, folder)
        self.cluster.start()
        plan = self.cluster.plan
        self.side = Side(target.name, self.cluster.bootstrap, plan.zookeeper_direct())
        self.side.until(self.side.answers, deadline_s=30)

    def open(self, topic: str, logs: Sequence[OldLog], *, clean: bool) -> None:
        """Have the broker start over these folders, after a clean stop or not."""
        self.side.create(topic, ((1,),) * len(logs))
        self.cluster.controls().stop("b1")
        self.side.close()
        (data,) = self.cluster.log_dirs("b1")
        for number, log in enumerate(logs):
            folder = data / f"{topic}-{number}"
            for path in folder.iterdir():
                if path.name != "partition.metadata":
                    path.unlink()
            log.write(folder)
        for name, offsets in (
            ("recovery-point-offset-checkpoint", [log.recovery_point for log in logs]),
            ("replication-offset-checkpoint", [log.rows[-1].offset + 1 for log in logs]),
        ):
            rows = [f"{topic} {number} {offset}" for number, offset in enumerate(offsets)]
            (data / name).write_text("\n".join(["0", str(len(rows)), *rows]) + "\n")
        (data / "cleaner-offset-checkpoint").write_bytes(b"")
        if not clean:
            (data / ".kafka_cleanshutdown").unlink()
        self.cluster.controls().start("b1")
        for number in range(len(logs)):
            self.side.until(lambda n=number: self.side.serves(topic, n, 1))  # type: ignore[misc]


@pytest.fixture(scope="module")
def openers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Opener, Opener]]:
    """Ours and Apache Kafka's."""
    folder = tmp_path_factory.mktemp("old-folders")
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        targets: list[Target] = [UrteilTarget(), KafkaTarget()]
        ours, theirs = pool.map(lambda target: Opener(target, folder / target.name), targets)
        for each in (ours, theirs):
            stack.callback(each.cluster.close)
        yield ours, theirs


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize(
    "first_seed", [0, pytest.param(100_000, marks=pytest.mark.thorough)], ids=["few", "more"]
)
def test_folders_of_other_releases_are_served_alike(
    openers: tuple[Opener, Opener], first_seed: int, clean: bool
) -> None:
    count = FOLDERS * 5 if first_seed else FOLDERS
    drawn = (draw(seed, clean=clean) for seed in itertools.count(first_seed))
    logs = list(itertools.islice((log for log in drawn if not log.stops_kafka), count))
    topic = f"old-{first_seed}-{'clean' if clean else 'unclean'}"
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda opener: opener.open(topic, logs, clean=clean), openers))
    failures = []
    for number, log in enumerate(logs):
        failures += [f"{log.what}: {what}" for what in _differences(openers, topic, number, log)]
    assert not failures, "\n".join(failures)


def _differences(
    openers: tuple[Opener, Opener], topic: str, number: int, log: OldLog
) -> Iterator[str]:
    readers = [OldLogReader(opener.side, topic) for opener in openers]
    ours, theirs = (reader.rows(number, log) for reader in readers)
    if not set(ours) <= set(log.rows):
        yield f"ours has what nobody wrote: {sorted(set(ours) - set(log.rows))[:3]}"
    lacking = sorted(row.offset for row in set(theirs) - set(ours))
    if lacking and not _may_be_a_power_cut(log):
        yield f"ours lacks {len(lacking)} that Apache Kafka has, from offset {lacking[0]} on"
    if log.hurt_file:
        return
    if theirs != log.rows or ours != log.rows:
        yield f"{len(ours)} and {len(theirs)} of {len(log.rows)} records"
    yield from differences(*readers, number, log)


def _may_be_a_power_cut(log: OldLog) -> bool:
    """Whole batches lacking where nothing was flushed (docs/broker/log-directories.md). Beside a
    segment that it splits, Apache Kafka loads anew what it cut before, and takes the cut for
    whole."""
    return not log.is_flushed and (log.leaps or all(batch.magic == 2 for batch in log.batches))
