"""Our cluster and Apache Kafka's side by side.

`URTEIL_CONFORMANCE=ours,theirs` names two that stand already (`urteil cluster up --name ours`,
`... --target kafka --name theirs`), for repeated tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.conformance.differences import differences
from tests.conformance.permitted import OWN
from tests.conformance.questions.registry import Question
from tests.conformance.side import Side
from urteil.harness import standing
from urteil.harness.cluster import Cluster
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget, Target, UrteilTarget

QUICK = {"group.initial.rebalance.delay.ms": "20", "log.cleaner.backoff.ms": "300"}
LASTING = {
    "zookeeper.session.timeout.ms": "15000",
    "replica.lag.time.max.ms": "6000",
    "connections.max.idle.ms": "3600000",
}
"""Most tests kill no broker. A host that stalls for seconds must end no session (Apache Kafka exits
when it loses its first one) and must remove no follower from the ISR. A follower that a test stops
leaves the ISR after at most one and a half lag times, before its session ends. Idle connections
stay open between modules."""


class Pair:
    """Both clusters, for tests outside the question bank."""

    def __init__(self, ours: Side, theirs: Side) -> None:
        self.ours, self.theirs = ours, theirs
        self._count = 0
        self.compared = 0

    def name(self, kind: str) -> str:
        """A name for a topic or group of one test alone, the same on both sides."""
        self._count += 1
        return f"{kind}-{os.getpid()}-{self._count}"

    def run_on_both(self, do: Callable[[Side], Any]) -> None:
        """Do something on both sides and ignore its result."""
        do(self.theirs)
        do(self.ours)

    def assert_same(self, ask: Callable[[Side], Any]) -> Any:
        """Ask both sides and assert equal answers. Returns the answer."""
        self.compared += 1
        expected = ask(self.theirs)
        answered = ask(self.ours)
        own = Question(
            subject="", text="", versions=(), ask=lambda asker: ask(asker.side), number=0
        )
        left = [
            difference
            for difference in differences(expected, answered)
            if not any(entry.excuses(own, difference) for entry in OWN)
        ]
        assert not left, "\n".join(map(str, left))
        return expected


@contextmanager
def standing_or_fresh(folder: Path) -> Iterator[Pair]:
    """The two clusters that URTEIL_CONFORMANCE names, or two new ones under `folder`."""
    with ExitStack() as stack:
        ours, theirs = _standing_pair() or _new_pair(folder, stack)
        yield Pair(ours, theirs)
        ours.close()
        theirs.close()


def _standing_pair() -> tuple[Side, Side] | None:
    names = os.environ.get("URTEIL_CONFORMANCE")
    if not names:
        return None
    ours, theirs = (standing.attach(name) for name in names.split(","))
    return (
        Side("ours", ours.bootstrap, ours.zookeeper),
        Side("theirs", theirs.bootstrap, theirs.zookeeper),
    )


def _new_pair(folder: Path, stack: ExitStack) -> tuple[Side, Side]:
    spec = ClusterSpec(brokers=3, config=QUICK | LASTING)
    targets: list[tuple[str, Target]] = [("ours", UrteilTarget()), ("theirs", KafkaTarget())]
    clusters = [(name, Cluster(spec, target, folder / name)) for name, target in targets]
    for _, cluster in clusters:
        stack.callback(cluster.close)
    with ThreadPoolExecutor(len(clusters)) as pool:
        list(pool.map(lambda cluster: cluster[1].start(), clusters))
    ours, theirs = (
        Side(
            name,
            cluster.bootstrap,
            cluster.plan.zookeeper_direct(),
            cluster.controls(),
            addresses=[cluster.plan.direct_address(node) for node in cluster.plan.brokers],
        )
        for name, cluster in clusters
    )
    for side in (ours, theirs):
        side.until(side.answers, deadline_s=30)
    return ours, theirs
