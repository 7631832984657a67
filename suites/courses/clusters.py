"""Clusters of the labs: ours and Apache Kafka's, as `urteil cluster up` starts them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from urteil.harness import standing
from urteil.harness.kafka_tools import Address
from urteil.harness.standing import StandingCluster, StandingRequest
from urteil.suites.courses.lab import LabCluster
from urteil.suites.courses.player import LearnerPlace

TARGETS = {"ours": "urteil", "kafka": "kafka:3.9.1"}


@contextmanager
def standing_desks(cluster: LabCluster, folder: Path) -> Iterator[list[LearnerPlace]]:
    """A desk at a cluster of each target. Both clusters end with the block."""
    with ExitStack() as stack:

        def start(side: str) -> StandingCluster:
            request = StandingRequest(
                name=f"courses-{os.getpid()}-{cluster.name}-{side}",
                target=TARGETS[side],
                brokers=cluster.brokers,
                racks=cluster.racks,
                settings=dict(cluster.settings),
                tls=cluster.tls,
                acl=cluster.acl,
            )
            started = standing.start(request, folder / side)
            stack.callback(_stop, started.name)
            return started

        with ThreadPoolExecutor(len(TARGETS)) as pool:
            started = dict(zip(TARGETS, pool.map(start, TARGETS), strict=True))
        desks = []
        for side, state in started.items():
            desk = _place_of_learner(side, state)
            stack.callback(desk.close)
            desks.append(desk)
        yield desks


def _stop(name: str) -> None:
    with contextlib.suppress(standing.StandingError):
        standing.stop_standing(name)


def _place_of_learner(side: str, state: StandingCluster) -> LearnerPlace:
    addresses = {
        user.name: Address(
            bootstrap=state.bootstrap_servers,
            zookeeper=state.zookeeper,
            config=user.files["java"],
            is_secured=state.protocol != "PLAINTEXT",
        )
        for user in state.users
    }
    return LearnerPlace(side, addresses, Path(state.directory), standing.faults_on(state.name))
