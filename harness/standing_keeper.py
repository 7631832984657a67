"""Holds a standing cluster until SIGTERM: `python -m urteil.harness.standing_keeper ...`."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from pathlib import Path

import psutil

from urteil.chaos.views import LabFailure, NotHealthy
from urteil.harness.bell import Bell
from urteil.harness.cluster import Cluster
from urteil.harness.fault_keeper import FaultServer
from urteil.harness.parts import MissingPart
from urteil.harness.scenario import ClusterSpec
from urteil.harness.standing import StandingCluster, write_state
from urteil.harness.targets import parse_target


def keep(
    name: str, directory: Path, brokers: int, zookeepers: int, target: str, runtime: str
) -> None:
    """Start the cluster, write down where it is, and hold it until a signal."""
    ended = Bell()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.ring())
    spec = ClusterSpec(brokers=brokers, zookeepers=zookeepers)
    with Cluster(spec, parse_target(target), directory, runtime=runtime) as cluster:
        nodes = (*cluster.plan.zookeepers, *cluster.plan.brokers)
        key = secrets.token_bytes(16)
        faults = FaultServer(cluster.controls(), cluster.bootstrap, key)
        pids = {node: cluster.runtime.status(node).pid or 0 for node in nodes}
        write_state(
            StandingCluster(
                name=name,
                target=target,
                runtime=runtime,
                brokers=brokers,
                zookeepers=zookeepers,
                directory=str(directory),
                keeper=os.getpid(),
                keeper_began=psutil.Process().create_time(),
                bootstrap=cluster.bootstrap,
                metrics=cluster.metrics,
                zookeeper=cluster.plan.zookeeper_direct(),
                pids=pids,
                fault_port=faults.port,
                fault_key=key.hex(),
            )
        )
        ended.wait()


def main() -> int:
    name, directory, brokers, zookeepers, target, runtime = sys.argv[1:]
    try:
        keep(name, Path(directory), int(brokers), int(zookeepers), target, runtime)
    except (LabFailure, NotHealthy, MissingPart) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
