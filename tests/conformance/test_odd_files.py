"""Complete logs beside unexpected files: our broker serves every record, and Apache Kafka no record
that ours lacks. Each case has its own log directory, since a case may take its directory offline.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.broker.log.odd_files import CASES, Place
from tests.broker.log.old_folders import OldLog, Row
from tests.broker.log.test_odd_files import whole_log
from tests.conformance.old_logs import OldLogReader
from tests.conformance.pair import LASTING
from tests.conformance.side import Side
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget, Target, UrteilTarget

pytestmark = pytest.mark.thorough

CONFIG = LASTING | {"log.retention.ms": "-1"}
TOPIC = "odd"
SAFE = ("unknown files", ".cleaned files", "meta.properties missing")
"""Cases that both brokers serve: when these are led, so are all that the broker can serve."""


class OddOpener:
    """A broker with a log directory for each case, changed while it is down."""

    def __init__(self, target: Target, folder: Path, log: OldLog) -> None:
        self.log = log
        spec = ClusterSpec(brokers=1, log_dirs=len(CASES), config=CONFIG)
        self.cluster = Cluster(spec, target, folder)
        self.cluster.start()
        self.side = Side(target.name, self.cluster.bootstrap)
        self.side.until(self.side.answers, deadline_s=60)
        self.side.create(TOPIC, ((1,),) * len(CASES))

    def open(self, *, clean: bool) -> None:
        self.cluster.controls().stop("b1")
        self.side.close()
        for number, data in enumerate(self.cluster.log_dirs("b1")):
            place = self._place(number, data, clean=clean)
            if not CASES[number].stops_kafka or self.side.name != "kafka":
                CASES[number].act(place)
        self.cluster.controls().start("b1")
        self.side.until(self.side.answers, deadline_s=60)
        for number, case in enumerate(CASES):  # the order of the elections is unknown
            if case.name in SAFE:
                self.side.until(partial(self.side.serves, TOPIC, number, 1))

    def _place(self, number: int, data: Path, *, clean: bool) -> Place:
        folder, end = data / f"{TOPIC}-{number}", self.log.rows[-1].offset + 1
        (created_folder,) = data.parent.glob(f"*/{TOPIC}-{number}")
        created_folder.rename(folder)
        for path in folder.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        self.log.write(folder)
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            (data / name).write_text(f"0\n1\n{TOPIC} {number} {end}\n")
        (data / "log-start-offset-checkpoint").write_text("0\n0\n")
        if not clean:
            (data / ".kafka_cleanshutdown").unlink(missing_ok=True)
        return Place(data, folder, self.log)

    def rows(self, number: int) -> list[Row]:
        """The records of the case's partition; none if its directory is offline."""
        reader = OldLogReader(self.side, TOPIC)
        return reader.rows(number, self.log) if self.side.serves(TOPIC, number, 1) else []


@pytest.fixture(scope="module")
def odd_openers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OddOpener, OddOpener]]:
    folder, log = tmp_path_factory.mktemp("odd-files"), whole_log(1, 2)
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        targets: list[Target] = [UrteilTarget(), KafkaTarget()]
        ours, theirs = pool.map(
            lambda target: OddOpener(target, folder / target.name, log), targets
        )
        for opener in (ours, theirs):
            stack.callback(opener.cluster.close)
        yield ours, theirs


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
def test_logs_with_odd_files_are_served_completely(
    odd_openers: tuple[OddOpener, OddOpener], clean: bool
) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda opener: opener.open(clean=clean), odd_openers))
    ours, theirs = odd_openers
    failures = []
    for number, case in enumerate(CASES):
        expected, rows = case.rows(ours.log), ours.rows(number)
        if rows != expected:
            failures.append(f"{case.name}: {len(rows)} of {len(expected)} records")
        lacking = set(theirs.rows(number)) - set(rows)
        if lacking:
            failures.append(f"{case.name}: Apache Kafka has {len(lacking)} more")
    assert not failures, "\n".join(failures)
